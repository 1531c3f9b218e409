"""SHELL: what would happen, from files: the same engine, no cluster.

Belongs here: reading manifests, running the engine over them, reporting. ``schedule`` is ``evenkeel
simulate`` as a function, for tests and notebooks. Does not belong here: a second way to decide anything.
"""

from scheduler.simulate.inventory import InputProblem
from scheduler.simulate.run import schedule

__all__ = ["InputProblem", "schedule"]
