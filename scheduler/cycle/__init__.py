"""The cycle: reads the columns, returns decisions; pure, synchronous, one thread.

Belongs here: shapes and their boards (``boards``), choosing for a batch (``schedule``) and counting
why nothing fits (``diagnosis``). Does not belong here: carrying anything out, clocks, words for users.
"""
