"""The one door to all decisions: ``handle(event, now)`` and ``decide(now, allowance) → Outcome``.

Events go in, the columns change, decisions come out; a shell carries them out, and its results come back as
events. The engine owns the state, what waits and the cycle, and wires them once for every shell: the
operator's loop, manifests, traces and the audit. It learns the demand, tries waiting pods again, and reports why
they wait.

Belongs here: the order in which the packages below are called. Does not belong here: I/O, clocks, tasks, clients,
files. Time comes in as ``now``. A allowance says how much work there is time for. It counts its
answers, so that the same events and budgets give the same decisions again.
"""
