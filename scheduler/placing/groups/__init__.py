"""Groups on nodes: which domain, which members, all or nothing.

Belongs here: the domains of a topology (``domains``), how many pods fit where at most (``capacity``), which domain is
tried first (``ordering``, ``choosing``), how pods are kept together (``gathering``), other ways where the first try finds
no place (``search``), which domains other systems would choose (``kueue``, with ``balanced``, ``trees`` and ``sharing``;
``kai``; ``koordinator``; each with a reader of teams, ``by_...``), and the trial in which a group is placed (``placer``).
Does not belong here: who has to go to make room (``disruption``), and why a pod does not fit on a node (``shapes``).
"""
