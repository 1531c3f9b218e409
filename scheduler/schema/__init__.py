"""The array bundles: what state owns and kernels take, by name, shape, type and unit.

Belongs here: NamedTuples of arrays, the constants that index them, how empty ones are made, and small arrays
that pods share. Does not belong here: anything that computes (``kernels``) or that knows the pods and nodes
behind the figures (``state``).
"""
