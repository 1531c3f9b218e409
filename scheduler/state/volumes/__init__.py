"""Storage: claims, volumes, classes and drivers, and the volumes in use on each node.

Belongs here: storage objects of the API server, decisions about them that the API server does not have yet, and
counts of volumes in use, updated as pods come and go. Does not belong here: which node a claim may go to (``plugins/volumes``).
"""
