"""Groups: what is said of them, which pods are in them, and the entities that this makes.

Belongs here: the definitions by key, the members by group (``registry``), and how both become a tree of teams
(``forming``, ``levels``). Does not belong here: in which words a group is written (``api/groups``), and where it goes
(``placing``).
"""
