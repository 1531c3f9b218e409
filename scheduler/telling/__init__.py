"""What the scheduler knows, put into words and rows for people: reasons, placements, plans and advice.

Belongs here: why a pod waits (``sayings``), where a pod went (``placements``), what each node says of a pod
(``verdicts``), and what would let a pod run (``advice``). Does not belong here: whatever changes the state, but for
trials that are undone.
"""
