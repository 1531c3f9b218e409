"""From the history of a run to figures.

Belongs here: ``fill``, ``streams`` and ``recorded`` make the record and the curve of a run of their kind;
``by_resource`` are the figures that all three have of every resource, ``usage`` what was in use when, told
from who was where, ``stranded`` the free capacity that no pod could use; ``averages`` are means that
know what is missing, ``classes`` the sizes that pods ask, ``summary`` is over seeds. Does not belong here:
how figures are shown.

A record is flat. Percentages are of the trace's GPU capacity unless their name says otherwise. A figure that
the run cannot give (a load it never reached, fragments not measured, a size nobody asked for, GPUs in a
trace without any) is None.
"""
