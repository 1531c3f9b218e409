"""Measures figures from the history of a run.

Belongs here: ``fill``, ``streams`` and ``recorded`` make the record and the curve of a run of their kind;
``moves`` has the figures of moved pods; ``by_resource`` has the figures of every resource that all three share; ``usage`` computes how much was in use at each
time from the pods on each node; ``stranded`` measures the free capacity that no pod could use; ``averages`` has means
that skip missing values, ``classes`` has the sizes that pods request, ``summary`` joins the seeds. Does not
belong here: how figures are shown.

A record is flat. Percentages are of the trace's GPU capacity unless their name says otherwise. A figure is None
if the run has none: a load that was never reached, fragments that were not measured, a size that no pod
requested, GPUs in a trace without GPUs.
"""
