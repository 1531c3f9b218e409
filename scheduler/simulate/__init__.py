"""SHELL: simulates decisions: it runs the same engine over objects from files or a cluster, and writes nothing.

Belongs here: reading manifests, making the pods of workloads, what-ifs, running the engine over them, reporting.
``schedule`` is ``evenkeel simulate`` as a function, for tests and notebooks. Does not belong here: a second way
to decide anything, and talking to a cluster.
"""

from scheduler.simulate.reading.inventory import InputProblem
from scheduler.simulate.run import schedule

__all__ = ["InputProblem", "schedule"]
