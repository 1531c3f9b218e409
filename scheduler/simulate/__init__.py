"""The shell without a cluster: the same state, cycle and kernels on files.

Belongs here: reading manifests, running the core over them, reporting. ``schedule`` is the whole of
it as a function, for tests and notebooks. Does not belong here: a second way to decide anything.
"""

from scheduler.simulate.run import InputProblem, schedule

__all__ = ["InputProblem", "schedule"]
