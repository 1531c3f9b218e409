"""The array bundles: what state owns and kernels take, by name, shape, type and unit.

Belongs here: NamedTuples of arrays, the constants that index them, and how an empty one, or one that many have in common, is made. Does not
belong here: anything that computes (``kernels``) or that knows whom the figures are of (``state``).
"""
