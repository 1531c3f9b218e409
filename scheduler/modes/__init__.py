"""What the scoring modes learn: tables made from the demand, and when they are made again.

Belongs here: one file for what a mode's kernel reads besides the columns. Does not belong here: the
arithmetic of a score (``kernels/modes``), or which mode scores which pod (``cycle``).
"""
