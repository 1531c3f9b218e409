"""What preemption has to know: nominations, pods that are being deleted, disruption budgets.

Belongs here: these facts by name and row. Does not belong here: the choice of the victims (``cycle``).
"""
