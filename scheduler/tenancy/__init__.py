"""Tenants: what each queue is owed, who has quota and who waits for it, and whose turn it is.

Belongs here: trees of queues and their arithmetic, flavors, the order of those who wait, who gives quota back, history.
Does not belong here: nodes and cards, what is written to the API server, and entities that wait for nodes (waiting).
"""
