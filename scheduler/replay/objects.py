"""Makes the nodes and pods of a trace as objects that an API server would serve.

A share of a card is the same share of its cores and of its memory, rounded up to whole percent. The limit of an
app's pods per node is expressed as in Kubernetes, over the hostname. A limit of one is required anti-affinity
of a pod against its own app. A larger limit is a topology spread constraint whose minDomains exceeds the number of
nodes, so that the emptiest node counts as empty and maxSkew is the most on any node.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from scheduler.api import names, wire
from scheduler.api.cards import Card
from scheduler.devices import objects as devices
from scheduler.devices.mig_models import CUT_MODELS
from scheduler.replay.experiment import Trace, TraceNode, TracePod

APP, MODEL = "app", "model"
# Koordinator's annotations of a group that no object stands for.
_GANG, _GANG_MINIMUM = (
    f"gang.scheduling.koordinator.sh/{what}" for what in ("name", "min-available")
)
# Sharers per card, and pods per node: so many that neither limits anything.
_SHARERS, _PODS = 100, 1001
# MiB of known models, and of models that are not disclosed.
_CARD_MIB = {"T4": 15360, "P100": 16384, "V100M16": 16384, "V100M32": 32768, "A10": 24576}
_OTHER_MIB = 81920
_ANY_AMOUNT = 2**50


def make_node(node: TraceNode, place: int, *, has_hostname: bool = False) -> wire.Node:
    """Make a node as the API server would serve it; names sort in the order of the nodes' places."""
    name = f"{place:05d}-{node.name}"
    allocatable: wire.Quantities = {
        "cpu": f"{node.cpu_milli}m",
        "memory": f"{node.memory_mib}Mi",
        "pods": _PODS,
        **dict(node.extended),
    }
    cut = CUT_MODELS.get(node.mig)
    cards = [
        Card(
            id=f"{name}-{i}",
            index=i,
            sharers=_SHARERS,
            mib=cut.mib if cut else _CARD_MIB.get(node.model, _OTHER_MIB),
            cores=100,
            model=devices.write_model(node.model),
            is_carved=cut is not None,
            parts=cut.parts if cut else (),
        )
        for i in range(node.gpus)
    ]
    made = devices.make_node(name, allocatable, cards)
    if has_hostname:
        # The name of a node in a trace may be an invalid value for a label.
        made.metadata.labels = {names.HOSTNAME: f"{place:05d}"}
    return made


def label_model(node: wire.Node, of: TraceNode) -> None:
    """Label a node with its GPU model, for the flavors of queues."""
    if of.model:
        node.metadata.labels = {**(node.metadata.labels or {}), MODEL: of.model}


def find_totals(trace: Trace, specs: Iterable[wire.PodSpec]) -> dict[str, str | int]:
    """Find what all nodes have of each resource that pods request; of resources of GPUs no amount is too large."""
    known: dict[str, str | int] = {
        names.CPU: f"{sum(node.cpu_milli for node in trace.nodes)}m",
        names.MEMORY: f"{sum(node.memory_mib for node in trace.nodes)}Mi",
        names.GPU: sum(node.gpus for node in trace.nodes),
    }
    for node in trace.nodes:
        for name, amount in node.extended:
            known[name] = int(known.get(name, 0)) + amount
    requested = {
        name: None
        for spec in specs
        for one in spec.containers or ()
        for name in (one.resources.requests or {} if one.resources else {})
    }
    return {name: known.get(name, _ANY_AMOUNT) for name in sorted(requested)}


def needs_hostnames(trace: Trace) -> bool:
    """Whether any pod of the trace needs the label of the hostname, which has a cost on every node."""
    return any(pod.max_per_node for pod in trace.pods)


def make_spec(
    pod: TracePod, scheduler_name: str, n_nodes: int = 0
) -> tuple[wire.PodSpec, dict[str, str]]:
    """Make the spec and the annotations of a pod of the trace, on a cluster of so many nodes."""
    limits: wire.Quantities = {
        "cpu": f"{pod.cpu_milli}m",
        "memory": f"{pod.memory_mib}Mi",
        **dict(pod.extended),
    }
    if pod.gpus:
        percent = 0 if pod.by_memory else -(-pod.gpu_milli // 10)
        limits |= devices.make_limits(cards=pod.gpus, cores=percent, mib=pod.gpu_mib)
    container = wire.Container("main", wire.Resources(requests=limits, limits=limits))
    spec = wire.PodSpec(scheduler_name=scheduler_name, containers=[container])
    if pod.max_per_node == 1:
        term = wire.PodTerm(label_selector=_make_app_selector(pod), topology_key=names.HOSTNAME)
        apart = wire.PodAffinity(required_during_scheduling_ignored_during_execution=[term])
        spec.affinity = wire.Affinity(pod_anti_affinity=apart)
    elif pod.max_per_node:
        spec.topology_spread_constraints = [
            wire.Spread(
                max_skew=pod.max_per_node,
                topology_key=names.HOSTNAME,
                when_unsatisfiable="DoNotSchedule",
                label_selector=_make_app_selector(pod),
                min_domains=n_nodes + 1,
            )
        ]
    return spec, devices.annotate_models(pod.models)


def list_resources(pod: TracePod) -> list[str]:
    """List the resources that a pod requests."""
    spec, _ = make_spec(pod, "")
    return [
        name for one in spec.containers if one.resources for name in one.resources.requests or {}
    ]


def annotate_waiting(pod: TracePod, group_size: int, *, says_run_time: bool) -> dict[str, str]:
    """Annotate a pod with its group, of so many pods, and if ``says_run_time`` with how long it says that it runs."""
    found = {}
    if pod.group:
        found = {_GANG: pod.group, _GANG_MINIMUM: str(group_size)}
    if says_run_time and pod.run_time < math.inf:
        # The API has whole seconds.
        found[names.RUN_TIME] = str(math.ceil(pod.run_time))
    return found


def make_labels(pod: TracePod) -> dict[str, str] | None:
    """Make the labels of a pod."""
    return {APP: pod.app} if pod.app else None


def _make_app_selector(pod: TracePod) -> wire.LabelSelector:
    return wire.LabelSelector(match_labels=make_labels(pod))
