"""Groups of pods and topologies, as people write them in the words of different systems.

Belongs here: the objects (``objects``), one value for a group whoever wrote it (``definitions``), and one table of
readers that make this value (``table``, ``readers``). Does not belong here: which pods of a group exist and where they
run (``state``), and where a group goes (``placing``).
"""
