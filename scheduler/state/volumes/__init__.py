"""Storage: claims, volumes, classes, drivers and what of them is used on which node.

Belongs here: what the API server tells of storage, what was decided of it ahead of that, and counts of volumes in
use, kept up as pods come and go. Does not belong here: which node a claim may go to (``plugins/volumes``).
"""
