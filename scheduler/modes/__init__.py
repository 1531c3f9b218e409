"""What the scoring modes learn: tables that are made from the demand, and when the tables are made again.

Belongs here: everything that the kernels of modes read besides the columns. Does not belong here: the arithmetic of a
score (``kernels/modes``), or which mode scores which pod (``cycle``).
"""
