"""What the scoring modes need learnt: tables made from the demand, and when they are made anew.

Belongs here: one file for what a mode's kernel reads besides the columns. Does not belong here: the
arithmetic of a score (``kernels/modes``), or who is scored by which mode (``cycle``).
"""
