"""The cases of vendors as Evenkeel sees them: nodes, pods and claims, and what a container gets on a node.

HAMi's figures are not always ours: of unmeasured devices only the number of sharers counts, and the memory of AWS's devices is
the number of their cores.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from scheduler.api import names, wire
from scheduler.api.cards import Card, CardUse, Slots, find_slots
from scheduler.api.pods.gpus import ContainerAsk, ContainerKind, GpuAsk
from scheduler.devices.contract import NodeReading, Words
from scheduler.devices.table import Devices
from scheduler.devices.vendors import enflame
from scheduler.devices.vendors.driver import VendorCards
from scheduler.devices.vendors.vendor import Vendor as Kind
from scheduler.kernels.devices import vendor_scores
from scheduler.schema import columns as c
from scheduler.schema import empty
from scheduler.state.cluster import Cluster
from tests import make
from tests.model import vendor_cases as cases


def make_node(case: cases.Node) -> wire.Node:
    """The node of a case; the number of devices is read of what can be allocated."""
    node = make.node(name=case.name, allocatable={**case.capacity, **case.allocatable})
    node.metadata.annotations = dict(case.annotations)
    node.metadata.labels = dict(case.labels)
    return node


def find_group(device: cases.Device) -> str:
    """The dies of a card of Vastai, the devices of a node of Inferentia, and the zones of links of Metax."""
    if device.info.get("DeviceStrategy", "die") != "die":
        return ""
    is_ring = "inf" in device.info.get("AWSNodeType", "")
    zone = device.info.get("LinkZone") or ""
    return str(device.info.get("AIC", "ring" if is_ring else zone))


def find_mib(kind: Kind, device: cases.Device) -> int:
    """The memory of devices of AWS is not known, so the number of their cores counts as memory."""
    return device.count if kind.word == NEURON else device.mib


NEURON = "AWSNeuron"


# A device of AWS has so many cores unless a case says something else.
ONE_CORE, TWO_CORES = (50, 50, 50), (100, 100, 100)


SOFT = {"huawei.com/vnpu-mode": "hami-core"}


def is_of_ascend(kind: Kind) -> bool:
    return kind.word.startswith("Ascend")


def make_pod(container: cases.Container) -> wire.Pod:
    pod = make.pod(name="p")
    pod.spec.containers[0].resources = wire.Resources(
        requests=dict(container.requests) or None, limits=dict(container.limits) or None
    )
    return pod


def make_slots(kind: Kind, picks: list[list[cases.Pick]]) -> Slots:
    def read(pick: cases.Pick) -> CardUse:
        if kind.is_unmeasured:
            return CardUse(pick.id, 1, 0)
        if kind.word == NEURON:
            return CardUse(pick.id, pick.cores.bit_count(), pick.cores)
        if kind.needs_models:
            return CardUse(pick.id, pick.mib, pick.cores, write_model(pick.info or {}))
        return CardUse(pick.id, pick.mib, pick.cores, pick.type if kind.names_models else "")

    return tuple(tuple(read(pick) for pick in slot) for slot in picks)


def read_of_pod(kind: Kind, case: cases.Answer) -> tuple[str, ...]:
    """What the driver reads on the pod of a case for its answer."""
    asks = VendorCards(kind).read_requests(make_answered(kind, case))
    return asks[0].of_pod if asks else ()


def make_answered(kind: Kind, case: cases.Answer) -> wire.Pod:
    """The pod of a case; one that requests what it gets if the case does not say what it requests."""
    pod = make.pod(name="p", annotations=dict(case.pod.annotations))
    unnamed = [cases.Container(name=f"c{i}") for i in range(len(case.picks))]
    containers = [*case.pod.init, *(case.pod.containers or unnamed)]
    made = [
        make_container(one if one.limits else request_picks(kind, one, picks))
        for one, picks in zip(containers, case.picks, strict=True)
    ]
    pod.spec.init_containers = made[: len(case.pod.init)]
    pod.spec.containers = made[len(case.pod.init) :]
    return pod


def request_picks(
    kind: Kind, container: cases.Container, picks: list[cases.Pick]
) -> cases.Container:
    """The container as it requests what it gets."""
    limits = {kind.cards: str(len(picks))} if picks else {}
    if picks and kind.needs_models:
        limits = {kind.cards: str((picks[0].info or {})["drsSlice"])}
    if picks and kind.word == "Metax-SGPU":
        limits[kind.memory] = "4"
    return msgspec.structs.replace(container, limits=limits)


def write_model(info: dict[str, Any]) -> str:
    """The model of a card of Enflame whose parts a case tells, or one part."""
    told = info.get("profiles") or {info["profileName"]: info["profileID"]}
    profiles = tuple(
        enflame.Profile(name, key, *map(int, name.removesuffix("gb").split("g.")))
        for name, key in told.items()
    )
    most = int(info.get("maxSlice", 6))
    return enflame.write_model(enflame.CardModel(info.get("minor", "0"), most, profiles))


def make_container(case: cases.Container) -> wire.Container:
    made = make_pod(case).spec.containers[0]
    made.name = case.name
    return made


class Told(VendorCards):
    """The driver, on a node that has the devices of a case, for a pod that requests what the case says."""

    def __init__(self, kind: Kind, case: cases.Fit) -> None:
        super().__init__(kind)
        self._kind, self._case = kind, case

    def read_node(self, node: wire.Node) -> Words:
        return node.metadata.name, ""

    def serves(self, _seen: NodeReading) -> bool:
        return True

    def list_cards(self, _words: Words) -> tuple[Card, ...]:
        if is_of_ascend(self._kind):
            return super().list_cards(super().read_node(self._make_node()))
        parted = self._kind.needs_models
        return tuple(
            Card(
                id=one.id,
                index=i,
                sharers=100 if self._kind.word == "XPU" else one.count,
                mib=one.count if self._kind.is_unmeasured else find_mib(self._kind, one),
                cores=0 if self._kind.is_unmeasured else one.cores,
                model=write_model(one.info) if parted else one.type or self._kind.word,
                mode=one.info.get("QosPolicy", ""),
                healthy=one.healthy,
                group=find_group(one),
            )
            for i, one in enumerate(list_devices(self._case))
        )

    def _make_node(self) -> wire.Node:
        """The node with the register that has the devices of the case."""
        node, there = make_node(self._case.node), list_devices(self._case)
        told = [
            {
                "id": one.id,
                "index": i,
                "count": one.count,
                "devmem": one.mib,
                "devcore": one.cores,
                "type": self._kind.word,
                "health": one.healthy,
                "custominfo": one.info,
            }
            for i, one in enumerate(there)
        ]
        register = {self._kind.register: msgspec.json.encode(told).decode()}
        node.metadata.annotations = {**(node.metadata.annotations or {}), **register}
        return node

    def read_requests(self, pod: wire.Pod) -> tuple[GpuAsk, ...]:
        wanted = self._case.ask
        if self._kind.needs_models:
            pod = make.pod(name="p", annotations=dict(pod.metadata.annotations or {}))
            asked: wire.Quantities = {self._kind.cards: wanted.mib}
            if wanted.percent < 0:
                asked = {self._kind.memory: wanted.mib, self._kind.cores: wanted.cores}
            pod.spec.containers[0].resources = wire.Resources(limits=asked)
            return super().read_requests(pod)
        (ask,) = super().read_requests(pod)
        if self._kind.is_unmeasured:
            one = ContainerAsk(ContainerKind.APP, wanted.count, 1)
        elif self._kind.word == NEURON:
            parts = ONE_CORE if wanted.cores == 1 else TWO_CORES
            one = ContainerAsk(ContainerKind.APP, wanted.count, 0, *parts)
        else:
            cores = 100 if self._kind.is_whole else min(100, wanted.cores)
            cores = 0 if ask.sharing.coreless else cores
            mib = 0 if wanted.percent == 100 else wanted.mib
            percent = 0 if mib else wanted.percent or 100
            of_cores = cores if self._kind.is_of_cores else 0
            one = ContainerAsk(ContainerKind.APP, wanted.count, mib, percent, cores, of_cores)
        # Earlier containers requested what they got.
        earlier = [
            ContainerAsk(ContainerKind.APP, len(picks), picks[0].mib, 0, picks[0].cores)
            for picks in self._case.before
        ]
        return (ask._replace(containers=(*earlier, one)),)


def list_devices(case: cases.Fit) -> list[cases.Device]:
    """The devices, with those of earlier containers at the end, where the walk begins, and before these had them."""
    had = [pick for picks in case.before for pick in picks]

    def give_back(one: cases.Device) -> cases.Device:
        mine = [pick for pick in had if pick.id == one.id]
        return msgspec.structs.replace(
            one,
            used=one.used - len(mine),
            used_mib=one.used_mib - sum(pick.mib for pick in mine),
            used_cores=one.used_cores - sum(pick.cores for pick in mine),
        )

    there = map(give_back, case.devices)
    return sorted(there, key=lambda one: any(pick.id == one.id for pick in had))


def sum_marks(kind: Kind, device: cases.Device) -> int:
    """What the pods on a device add to its marks."""
    asks = [
        ask
        for notes in device.pods
        for ask in VendorCards(kind).read_requests(
            make.pod(name="q", requests={kind.cards: 1}, annotations=notes)
        )
    ]
    return sum(ask.sharing.mark for ask in asks)


def place(kind: Kind, case: cases.Fit) -> tuple[list[tuple[str, int, int]], str]:
    """The devices that are chosen, from the last to the first, and why the node is refused."""
    driver = Told(kind, case)
    cluster = Cluster(devices=Devices((driver,)))
    cluster.see_node(make.node(name="n1", cpu=64, allocatable={kind.cards: 1000}))
    used = cluster.cards.columns.used
    for d, one in zip(cluster.registers.list_card_rows(0), list_devices(case), strict=True):
        mib, cores = (one.used, 0) if kind.is_unmeasured else (one.used_mib, one.used_cores)
        if kind.word == NEURON:
            mib = one.used_cores.bit_count()
        if kind.is_whole and one.used:
            mib, cores = one.mib, one.cores
        used[:, d] = (cores, mib, one.used)
        cluster.cards.columns.marks[d] = sum_marks(kind, one)
    policy = {names.HAMI_GPU_POLICY: "numa,mutex" if "mutex" in case.policy else "numa"}
    pod = make.pod(
        name="p", requests={kind.cards: 1}, annotations={**case.pod.annotations, **policy}
    )
    pod.spec.containers *= 1 + len(case.before)
    record = cluster.see_pod(pod)
    assert record is not None
    outcome = make.cycle(cluster=cluster).schedule([record])
    if not outcome.binds:
        (hold,) = outcome.holds
        assert hold.diagnosis is not None
        return [], "; ".join(detail.text for detail in hold.diagnosis.details)
    *earlier, slot = find_slots(outcome.binds[0].devices, driver.name)
    assert [[use.uuid for use in uses] for uses in earlier] == [
        [pick.id for pick in picks] for picks in case.before
    ]
    if kind.is_unmeasured:
        return [(use.uuid, 0, 0) for use in slot], ""
    models = {one.id: one.type if kind.names_models else "" for one in case.devices}
    if kind.needs_models:
        models = {one.id: write_model(one.info) for one in case.devices}
    assert [use.model for use in slot] == [models[use.uuid] for use in slot]
    hidden = kind.word == NEURON
    return [(use.uuid, 0 if hidden else use.mem_mib, use.cores) for use in slot], ""


class Scored(VendorCards):
    """The driver, on a node that has the devices of a case, or those that it picks."""

    def __init__(self, kind: Kind, case: cases.Score) -> None:
        super().__init__(kind)
        picked = {pick.id: pick for some in case.picks for pick in some}.values()
        self.listed = case.devices or [
            cases.Device(id=one.id, index=i, count=1, mib=1, cores=100, info=one.info or {})
            for i, one in enumerate(picked)
        ]
        node = make.node(
            name="n1",
            allocatable={kind.cards: len(self.listed)},
            annotations=dict(case.node.annotations),
        )
        self._own = super().list_cards(super().read_node(node))

    def read_node(self, node: wire.Node) -> Words:
        return node.metadata.name, ""

    def serves(self, _seen: NodeReading) -> bool:
        return True

    def list_cards(self, _words: Words) -> tuple[Card, ...]:
        return tuple(
            Card(
                id=one.id,
                index=i,
                sharers=one.count,
                mib=one.mib,
                cores=one.cores,
                model=self.name,
                group=find_group(one) or str(one.info.get("NetworkID", "")),
                by_number=self._own[i].by_number if self._own else (0, 0),
            )
            for i, one in enumerate(self.listed)
        )


def score(kind: Kind, case: cases.Score) -> float:
    """What HAMi's node policy adds to the score of the node of a case for its picks."""
    driver = Scored(kind, case)
    cluster = Cluster(devices=Devices((driver,)))
    cluster.see_node(make.node(name="n1", cpu=64, allocatable={kind.cards: 1000}))
    there = cluster.registers.list_card_rows(0)
    rows = {one.id: d for one, d in zip(driver.listed, there, strict=True)}
    for one in driver.listed:
        cluster.cards.columns.used[c.SLOTS, rows[one.id]] = one.used
        cluster.cards.columns.marks[rows[one.id]] = sum_marks(kind, one)
    notes = {**case.pod.annotations, names.HAMI_NODE_POLICY: case.policy}
    cycle = make.cycle(cluster=cluster)
    record = cluster.see_pod(make.pod(name="p", requests={kind.cards: 1}, annotations=notes))
    shape = cycle.get_shape(record) if record else None
    assert shape is not None
    cycle.boards.refresh(shape)
    picks = [
        (rows[one.id], slot, one.cores) for slot, some in enumerate(case.picks) for one in some
    ]
    s = empty.make_scratch(len(rows), len(picks), 0)
    s.picks[:], s.pick_slot[:], s.pick_cores[:] = np.array(picks, np.int64).T
    if not shape.ask.prefers.mode.scorer:
        return 0
    return vendor_scores.score_choice(
        cluster.nodes.columns,
        cluster.cards.columns,
        shape.ask,
        0,
        len(picks),
        case.policy == "spread",
        s,
    )
