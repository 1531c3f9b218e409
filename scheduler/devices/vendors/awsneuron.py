"""AWS Neuron: devices as a whole, and cores. A node reports the number of both.

Cores are requested of devices with two cores: one core, or a multiple of two. Devices with another number of cores are given as
a whole only. HAMi takes the number of cores of the first node that it has seen for that of all nodes; here each node has its own.
"""

from __future__ import annotations

from functools import partial

from scheduler.api import wire
from scheduler.api.cards import Card, CardUse
from scheduler.api.hami_config.sections import DeviceConfig
from scheduler.api.pods import gpus
from scheduler.api.pods.gpus import ContainerAsk, ContainerKind, GpuAsk
from scheduler.api.reasons import CardRefusal
from scheduler.devices.contract import Shown
from scheduler.devices.vendors.vendor import Answer, Vendor, read_offered
from scheduler.errors import BadInput
from scheduler.schema import columns as c

_WORD = "AWSNeuron"
_PAIR, _ONE = 2, 1
_HALF_PERCENT, _PERCENT = 50, 100
# No device has so many cores; each is a bit of a figure.
_CORES_MAX = 30
_NANOSECONDS = 10**9
_TYPE_LABEL = "node.kubernetes.io/instance-type"
_BY_CORES = "cores"


def list_kinds(config: DeviceConfig) -> tuple[Vendor, ...]:
    """List the kinds of devices with the resources that a configuration gives them."""
    devices, cores = config.awsneuron.cards, config.awsneuron.cores

    def read_figures(node: wire.Node) -> tuple[str, ...]:
        n, n_cores = read_offered(node, devices), read_offered(node, cores)
        is_ring = "inf" in (node.metadata.labels or {}).get(_TYPE_LABEL, "").lower()
        words = node.metadata.name, str(n), str(n_cores), "ring" if is_ring else ""
        return words if n else ("", "", "", "")

    def read_container(kind: ContainerKind, container: wire.Container, field: str) -> ContainerAsk:
        n = gpus.read_integer(container, devices, field)
        if n:
            return ContainerAsk(kind, n, 0, _PERCENT, _PERCENT, _PERCENT)
        n_cores = gpus.read_integer(container, cores, field) if cores else None
        if not n_cores:
            return ContainerAsk(kind)
        if n_cores == _ONE:
            return ContainerAsk(kind, 1, 0, _HALF_PERCENT, _HALF_PERCENT, _HALF_PERCENT)
        if n_cores % _PAIR:
            problem = f"{n_cores} is neither 1 nor a multiple of {_PAIR}"
            raise BadInput(f"{field}[{cores}]", problem)
        return ContainerAsk(kind, n_cores // _PAIR, 0, _PERCENT, _PERCENT, _PERCENT)

    def complete_ask(ask: GpuAsk, pod: wire.Pod) -> GpuAsk:
        by_cores = tuple(
            _BY_CORES if one.cards and not gpus.read_integer(container, devices, field) else ""
            for one, (_, container, field) in zip(
                ask.containers, gpus.list_containers(pod), strict=True
            )
        )
        if not any(by_cores):
            return ask
        return ask._replace(use_types=(_name_model(_PAIR).upper(),), of_pod=by_cores)

    def write_numbers(answer: Answer) -> dict[str, str]:
        return _write_numbers(answer, cores)

    return (
        Vendor(
            word=_WORD,
            cards=devices,
            cores=cores,
            # Its cores are bits, and their number stands for memory.
            cores_figure=c.MIB,
            allocated="hami.io/aws-neuron-devices-allocated",
            use_ids=("aws.amazon.com/use-neuron-uuid",),
            nouse_ids=("aws.amazon.com/nouse-neuron-uuid",),
            read_node=read_figures,
            list_cards=_list_cards,
            count_most=partial(_count_most, devices, cores),
            read_container=read_container,
            complete_ask=complete_ask,
            write_use=_write_use,
            read_use=_read_use,
            write_more=write_numbers,
            lock=None,
            chooser=c.SPANS,
            shown=Shown(_WORD, has_memory=False),
            codes={CardRefusal.MEMORY: "CardInsufficientCore"},
        ),
    )


def _count_most(devices: str, cores: str, container: wire.Container, field: str) -> int:
    try:
        n = gpus.read_integer(container, devices, field)
        n_cores = gpus.read_integer(container, cores, field) if cores else None
    except BadInput:
        return 1
    return n or -(-(n_cores or 0) // _PAIR)


def _name_model(n_cores: int) -> str:
    return f"{_WORD} with {n_cores} cores"


def _list_cards(words: tuple[str, ...]) -> tuple[Card, ...]:
    """List the devices. Their memory is not known, so the number of their cores counts as memory."""
    name, n, ring = words[0], int(words[1]), words[3]
    # A node does not offer unhealthy cores, and these are no reason to close the others.
    n_cores = min(max(1, -(-int(words[2]) // n)), _CORES_MAX)
    return tuple(
        Card(
            id=f"{name}-{_WORD}-{i}",
            index=i,
            sharers=n_cores,
            mib=n_cores,
            cores=2**n_cores - 1,
            model=_name_model(n_cores),
            group=ring,
        )
        for i in range(n)
    )


def _write_use(use: CardUse) -> CardUse:
    return use._replace(mem_mib=0)


def _read_use(use: CardUse, ask: ContainerAsk) -> CardUse:
    """Read which cores a container has; who requests one core has one, whatever the annotation says."""
    bits = use.cores
    if ask.core_percent == _HALF_PERCENT and bits.bit_count() != 1:
        bits = 1
    return use._replace(mem_mib=max(1, bits.bit_count()), cores=max(1, bits))


def _write_numbers(answer: Answer, cores: str) -> dict[str, str]:
    """Write the numbers of devices or of cores, of all containers in one list."""
    numbers: list[int] = []
    for i, uses in enumerate(answer.slots):
        is_by_cores = i < len(answer.of_pod) and answer.of_pod[i] == _BY_CORES
        for use in uses:
            index = int(use.uuid.rpartition("-")[2])
            if is_by_cores:
                numbers += [_PAIR * index + bit for bit in range(_PAIR) if use.cores >> bit & 1]
            else:
                numbers.append(index)
    if not numbers:
        return {}
    kind = {"NEURON_RESOURCE_TYPE": cores} if _BY_CORES in answer.of_pod else {}
    return {
        "AWS_NEURON_IDS": ",".join(map(str, numbers)),
        **kind,
        "NEURON_ALLOC_TIME": str(answer.now * _NANOSECONDS),
        "NEURON_ALLOCATED": "false",
        "aws.amazon.com/predicate-node": answer.node,
    }
