"""SHELL: plans of changes to a running cluster: ``evenkeel plan``.

Belongs here: what is said of pods that may be moved (``owners``), the question to the engine and what is made of its answer
(``command``, ``rows``), and how it is printed (``report``, ``markdown``). Does not belong here: which moves are worth it
(the core's ``defrag``).
"""
