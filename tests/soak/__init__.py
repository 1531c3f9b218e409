"""Random things happen to a real control plane for minutes, with an agent on every node and two replicas of the scheduler.

``fleet`` and ``vendors`` make the nodes, ``demand`` the pods, ``troubles`` what happens to them, ``replicas`` and ``agents``
the processes that are killed. ``ledger`` judges every state by the API server's objects alone; ``watching`` hands them to
it, and ``ending`` checks what is left when all is calm again.

    python -m tests.soak --minutes 30 --seed 7
"""
