"""What pods of higher priority are promised and may take: nominations, pods on their way out, disruption budgets.

Belongs here: what is known of that, by name and row. Does not belong here: who has to go for whom, which ``cycle``
decides.
"""
