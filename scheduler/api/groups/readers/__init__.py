"""The readers of groups, one file for each system in whose words groups are written.

Belongs here: what the words of one system mean (``kubernetes``, ``coscheduling``, ``kueue``, ``kai``, ``volcano``; and
for owners of pods ``owners``, which reads the pods, and ``workloads``, ``shares`` and ``segments``, which read the objects), and how single values
are read (``reading``). Readers raise ``BadInput``. Does not belong here: which reader reads a pod or an object, and what
becomes of a mistake (``groups.table``).
"""
