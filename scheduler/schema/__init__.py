"""The array bundles: what state owns and kernels take, by name, shape, type and unit.

Belongs here: NamedTuples of arrays, the constants that index them, and how empty ones are made, and those that pods share. Does not
belong here: anything that computes (``kernels``) or that knows whom the figures are of (``state``).
"""
