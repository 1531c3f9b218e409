"""What the pods of a trace request of each resource, and which resource is the scarcest.

The resources are ``cpu`` (1/1000 core), ``memory`` (MiB), ``gpu`` (milli-GPU, where any pod requests GPUs) and
the extended resources that some pod requests. The ratio of a resource is the sum of what the trace's pods request, each
counted once, over the sum of what its nodes have. The resource with the largest ratio binds, and so does every other
whose ratio is within a quarter of it: with less of such a resource, the cluster would hold fewer pods.

The load of an experiment is the load of GPUs if the trace has any, else of the resource with the largest ratio.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler.replay.experiment import WHOLE, Floats, Ints, Trace

CPU, MEMORY, GPU = "cpu", "memory", "gpu"
# A resource binds from this part of the largest ratio on.
BINDS = 0.75


@dataclass(frozen=True, slots=True)
class Demand:
    """What is requested and what there is: R resources, and P pods and N nodes in the order of the trace.

    Attributes:
        names: the names of the resources.
        amounts: [R, P] what each pod requests.
        capacity: [R, N] what each node has.
    """

    names: tuple[str, ...]
    amounts: Ints
    capacity: Ints

    @property
    def total(self) -> Ints:
        """[R] the sum of what the nodes have."""
        total: Ints = self.capacity.sum(axis=1)
        return total

    @property
    def ratios(self) -> Floats:
        """[R] what all pods request, over what all nodes have; 0 if the nodes have nothing."""
        total, ratios = self.total, np.zeros(len(self.names))
        np.divide(self.amounts.sum(axis=1), total, out=ratios, where=total > 0)
        return ratios

    @property
    def load_row(self) -> int:
        """The row of the load's resource."""
        return self.names.index(GPU) if GPU in self.names else int(self.ratios.argmax())

    @property
    def load_name(self) -> str:
        """The name of the load's resource."""
        return self.names[self.load_row]

    @property
    def binding_rows(self) -> list[int]:
        """The rows of the resources that bind, the scarcest first."""
        ratios = self.ratios
        binds = np.flatnonzero((ratios > 0) & (ratios >= BINDS * ratios.max()))
        return sorted(binds.tolist(), key=lambda row: -ratios[row])


def read_demand(trace: Trace) -> Demand:
    """Read what the pods of a trace request, and what its nodes have."""
    pods, nodes = trace.pods, trace.nodes
    amounts = {CPU: [pod.cpu_milli for pod in pods], MEMORY: [pod.memory_mib for pod in pods]}
    capacity = {CPU: [n.cpu_milli for n in nodes], MEMORY: [n.memory_mib for n in nodes]}
    if trace.has_gpus:
        amounts[GPU] = [pod.gpus * pod.gpu_milli for pod in pods]
        capacity[GPU] = [WHOLE * node.gpus for node in nodes]
    for name in sorted({name for pod in pods for name, _ in pod.extended}):
        amounts[name] = [dict(pod.extended).get(name, 0) for pod in pods]
        capacity[name] = [dict(node.extended).get(name, 0) for node in nodes]
    return Demand(
        tuple(amounts),
        np.array(list(amounts.values()), np.int64).reshape(len(amounts), len(pods)),
        np.array(list(capacity.values()), np.int64).reshape(len(amounts), len(nodes)),
    )
