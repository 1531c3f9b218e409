"""What the scheduler knows, put into words and rows for people: reasons, placements, plans and advice.

Belongs here: why a pod waits (``sayings``), where a pod went (``placements``), what each node says of a pod
(``verdicts``), what would let a pod run (``advice``), and all of that of one pod or node (``explained``). Does not
belong here: changes of the state, except trials that are undone.
"""
