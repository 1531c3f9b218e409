"""What waits: order, backoff, parking, and whom a change could help.

Belongs here: everything about pods that have no place yet, apart from finding them one (``cycle``).
"""
