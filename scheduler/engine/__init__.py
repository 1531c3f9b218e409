"""The one door to all decisions: ``handle(event, now)``, ``decide(now, allowance) → Outcome`` and ``ask(question)``.

Events go in, the columns change, decisions come out; a shell carries them out, and its results come back as
events. The engine owns the state, what waits and the cycle, and wires them once for every shell: the
operator's loop, manifests, traces and the audit. It learns the demand, tries waiting pods again, and reports why
they wait. What else a shell wants to know of them it asks: ``questions`` has the questions, with the types of their
answers, and ``answers`` says how each is answered. No question changes a decision.

Belongs here: the order in which the packages below are called. Does not belong here: I/O, clocks, tasks, clients,
files. Time comes in as ``now``. An allowance says how much work there is time for. It counts its
answers, so that the same events and budgets give the same decisions again.
"""
