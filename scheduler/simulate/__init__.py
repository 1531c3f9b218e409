"""The shell without a cluster: the same state, cycle and kernels on files.

Belongs here: reading manifests and traces, running the core over them, reporting. ``schedule`` is
``evenkeel simulate`` as a function, for tests and notebooks; ``command`` is ``evenkeel replay``: it
reads ``traces`` into the words of ``experiment``, draws ``workloads``, has ``fan_out`` run the engine,
takes ``measures`` and gives ``results`` and ``plots``. Does not belong here: a second way to decide
anything.
"""

from scheduler.simulate.run import InputProblem, schedule

__all__ = ["InputProblem", "schedule"]
