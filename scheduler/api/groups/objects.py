"""The objects that say which pods are a group, and how the cluster is built.

A spec stays as it is written: the reader of its system reads it, and says what is wrong with it. Several API groups have
a kind of the same name, so these kinds are named with their groups.
"""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from scheduler.api.wire import GuardedMeta, Object

# Parts of objects that say nothing of groups: they are large, and may hold secrets, which must not get into logs.
_LEFT_OUT = frozenset({
    "args", "command", "containers", "entrypoint", "env", "envFrom", "ephemeralContainers", "initContainers",
    "rayStartParams", "runtimeEnvYAML", "submitterPodTemplate", "trainerConfig", "volumes",
})  # fmt: skip
# No template is deeper below a spec.
_DEPTH_MAX = 16


class Raw(Object):
    """An object of which the spec and the status are read where they are needed; containers and the like are left out."""

    spec: Any = None
    status: Any = None

    def __post_init__(self) -> None:
        self.spec = _leave_out_parts(self.spec, 0)


def _leave_out_parts(value: Any, depth: int) -> Any:
    """Return a value without the parts that say nothing of groups."""
    if depth > _DEPTH_MAX:
        return None
    if isinstance(value, dict):
        return {
            key: _leave_out_parts(one, depth + 1)
            for key, one in value.items()
            if key not in _LEFT_OUT
        }
    if isinstance(value, list):
        return [_leave_out_parts(one, depth + 1) for one in value]
    return value


class KubePodGroup(Raw, tag="PodGroup.scheduling.k8s.io"):
    """Kubernetes' own PodGroup."""


class CompositePodGroup(Raw, tag="CompositePodGroup.scheduling.k8s.io"):
    """Kubernetes' group of groups."""


class SigsPodGroup(Raw, tag="PodGroup.scheduling.sigs.k8s.io"):
    """The PodGroup of Koordinator, and of scheduler-plugins until 2023."""


class XPodGroup(Raw, tag="PodGroup.scheduling.x-k8s.io"):
    """The PodGroup of scheduler-plugins."""


class KaiPodGroup(Raw, tag="PodGroup.scheduling.run.ai"):
    """KAI's PodGroup."""


class VolcanoPodGroup(Raw, tag="PodGroup.scheduling.volcano.sh"):
    """Volcano's PodGroup."""


class KueueTopology(Raw, tag="Topology.kueue.x-k8s.io"):
    """Kueue's Topology."""

    metadata: GuardedMeta = msgspec.field(default_factory=GuardedMeta)


class KaiTopology(Raw, tag="Topology.kai.scheduler"):
    """KAI's Topology."""


class ClusterNetworkTopology(Raw):
    """Koordinator's layers of the network."""


class Job(Raw):
    """A Job of Kubernetes."""


class JobSet(Raw):
    """A JobSet: several Jobs that run together."""


class LeaderWorkerSet(Raw):
    """Replicas of a leader with its workers."""


class MPIJob(Raw):
    """A launcher with its workers."""


class PyTorchJob(Raw):
    """A master with its workers."""


class TFJob(Raw):
    """A chief, parameter servers, workers and evaluators of TensorFlow."""


class XGBoostJob(Raw):
    """A master with its workers, of XGBoost."""


class PaddleJob(Raw):
    """A master with its workers, of PaddlePaddle."""


class JAXJob(Raw):
    """Workers of JAX."""


class TrainJob(Raw):
    """A job of Kubeflow's trainer, which makes a JobSet of it."""


class RayCluster(Raw):
    """A head with groups of workers."""


class RayJob(Raw):
    """A job with a RayCluster of its own."""


class RayService(Raw):
    """What serves from a RayCluster of its own."""


GroupObject = (
    KubePodGroup
    | CompositePodGroup
    | SigsPodGroup
    | XPodGroup
    | KaiPodGroup
    | VolcanoPodGroup
    | Job
    | JobSet
    | LeaderWorkerSet
    | MPIJob
    | PyTorchJob
    | TFJob
    | XGBoostJob
    | PaddleJob
    | JAXJob
    | TrainJob
    | RayCluster
    | RayJob
    | RayService
)
# Those of Kubeflow's training operator that have the same fields.
TRAINING_JOBS = PyTorchJob, TFJob, XGBoostJob, PaddleJob, JAXJob
TopologyObject = KueueTopology | KaiTopology | ClusterNetworkTopology
GROUP_KINDS = tuple(str(one.__struct_config__.tag) for one in get_args(GroupObject))
TOPOLOGY_KINDS = tuple(str(one.__struct_config__.tag) for one in get_args(TopologyObject))
