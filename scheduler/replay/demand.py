"""What the pods of a trace request of each resource, and which resource is the scarcest.

The resources are ``cpu`` (1/1000 core), ``memory`` (MiB), ``gpu`` (milli-GPU, where any pod requests GPUs) and
the extended ones that some pod requests. Of each, the ratio is all that the trace's pods request, each counted
once, over all that its nodes have. The resource with the largest ratio is the one that binds, and so does
every other whose ratio is within a quarter of it: with less of them, the cluster would hold fewer pods.

The load of an experiment is of GPUs where the trace has any, else of the resource with the largest ratio.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler.replay.experiment import WHOLE, Floats, Ints, Trace

CPU, MEMORY, GPU = "cpu", "memory", "gpu"
# Of the largest ratio, from which a resource binds.
BINDS = 0.75


@dataclass(frozen=True, slots=True)
class Demand:
    """R resources, P pods and N nodes in the order of the trace.

    Attributes:
        names: the names of the resources.
        amounts: [R, P] requested by each pod.
        capacity: [R, N] of each node.
    """

    names: tuple[str, ...]
    amounts: Ints
    capacity: Ints

    @property
    def total(self) -> Ints:
        """[R] all that the nodes have."""
        total: Ints = self.capacity.sum(axis=1)
        return total

    @property
    def ratios(self) -> Floats:
        """[R] requested by all pods together, over all there is; 0 where there is nothing."""
        total, ratios = self.total, np.zeros(len(self.names))
        np.divide(self.amounts.sum(axis=1), total, out=ratios, where=total > 0)
        return ratios

    @property
    def load_row(self) -> int:
        """The resource that load is of."""
        return self.names.index(GPU) if GPU in self.names else int(self.ratios.argmax())

    @property
    def load_name(self) -> str:
        """Its name."""
        return self.names[self.load_row]

    @property
    def binding_rows(self) -> list[int]:
        """The resources that bind, the scarcest first."""
        ratios = self.ratios
        binds = np.flatnonzero((ratios > 0) & (ratios >= BINDS * ratios.max()))
        return sorted(binds.tolist(), key=lambda row: -ratios[row])


def of_trace(trace: Trace) -> Demand:
    """What a trace requests, and what there is."""
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
