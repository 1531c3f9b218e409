"""A cluster with devices of every driver, to which random things happen in virtual time, and what must hold throughout.

Nodes and pods of vendors are those of the vendors' cases (``tests/data/hami/vendors``). A second ledger counts what every
pod holds of every device by what was decided, and not by what the engine says.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import msgspec
import yaml

from scheduler.api import names, steering, wire
from scheduler.api.cards import Card, CardUse, Grants
from scheduler.api.door import events
from scheduler.api.door.decisions import Bind
from scheduler.api.pods.gpus import ContainerKind, list_containers
from scheduler.config import Config
from scheduler.devices import answers
from scheduler.devices.contract import CardDriver
from scheduler.engine.allowance import SpentAllowance, Unlimited, Work
from scheduler.engine.engine import Engine
from scheduler.engine.questions.nodes import CardDrivers
from scheduler.state import checks
from tests import make
from tests.model import clusters, workloads
from tests.model.vendor_fleet import count_devices, list_cards, read_fleet

_MAP = "kube-system/hami-scheduler-device"
_CONFIG = Config(hami_config_map=_MAP)
_KIT = clusters.Kit(
    families={"hami": 6, "whole": 1, "none": 1},
    counts=(1, 2, 4),
    mixed=0.5,
    odd=False,
    taints=0.0,
    closed=0.0,
    cut=0.25,
)
_SHARED, _INSTANCE = "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"
_NVIDIA: dict[str, Any] = {
    "resourceCountName": names.GPU,
    "resourceMemoryName": names.GPU_MEMORY,
    "resourceMemoryPercentageName": names.GPU_MEMORY_PERCENT,
    "resourceCoreName": names.GPU_CORES,
    "memoryFactor": 1,
    "defaultGPUNum": 1,
}
_COUNTED = (names.GPU, _SHARED, _INSTANCE)
_N_HAMI, _N_OF_EACH, _PODS = 10, 2, 160


@lru_cache
def list_maps() -> tuple[str, ...]:
    """HAMi's configurations: what a chart writes, another name, a mistake, another unit of memory, other defaults."""
    of_vendors = {key: part for one in read_fleet().vendors for key, part in one.config.items()}

    def write(**changes: Any) -> str:
        return yaml.safe_dump({**of_vendors, "nvidia": {**_NVIDIA, **changes}})

    named = write(resourceCountName="example.com/vgpu")
    return write(), named, "nvidia: [", write(memoryFactor=2), write(defaultCores=20)


class LostError(AssertionError):
    """Something was given away twice, or forgotten."""


class World:
    """An engine, what the API server has, and binds under way.

    Engines of even seeds restart.

    Attributes:
        counts: how often each thing happened, and how many pods were bound by each driver.
        under_way: by uid of the pod: the binds of which the engine has not heard.
    """

    def __init__(self, seed: int) -> None:
        self.rng, self.now, self.seed = random.Random(seed), 1_000.0, seed
        self.counts: Counter[str] = Counter()
        self._serial = itertools.count(1)
        self._nodes: dict[str, wire.Node] = {}
        self._pods: dict[str, wire.Pod] = {}
        self._grants: dict[str, Grants] = {}
        self.under_way: dict[str, Bind] = {}
        # By node and device: the pods that hold it.
        self._holders: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._map = steering.ConfigMap(wire.Meta(name="hami-scheduler-device", namespace="kube-system", uid="m"), {"device-config.yaml": list_maps()[0]})  # fmt: skip
        self.engine = Engine(_CONFIG)
        self._silent: set[str] = set()
        self._restarts = seed % 2 == 0
        for node in self._found_nodes():
            self._nodes[node.metadata.name] = node
        self._start()
        own = [getattr(self, name) for name in dir(self) if name.startswith("on_")]
        often: list[Callable[[], None]] = [self.on_pod_comes, self.on_decision, self.on_bind_done]
        self._events: list[Callable[[], None]] = [*own, *often * 8]

    def _found_nodes(self) -> Iterator[wire.Node]:
        for i, node in enumerate([one for one in read_fleet().nodes for _ in range(_N_OF_EACH)]):
            body = msgspec.to_builtins(node)
            body["metadata"] |= {"name": f"v-{i}", "uid": f"uid-v-{i}"}
            yield msgspec.convert(body, wire.Node)
        for i in range(_N_HAMI):
            yield from clusters.wired([clusters.node(self.rng, f"h-{i}", _KIT)])
        labels = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.memory": "40960"}
        yield make.node(name="shared", cpu=64, labels=labels, allocatable={_SHARED: 16})
        yield make.node(name="cut", cpu=64, allocatable={_INSTANCE: 14})

    # The run.

    def play(self, n: int, *, verify_each: int = 200) -> None:
        """Let ``n`` things happen, and check everything now and then."""
        for i in range(n):
            self.now += self.rng.expovariate(2.0)
            happen = self.rng.choice(self._events)
            self.counts[happen.__name__] += 1
            happen()
            if i % verify_each == 0:
                self.verify()
        self.settle()

    def settle(self) -> None:
        """Let what is under way come to its end; then nobody is left who could be placed."""
        for node in sorted(self._silent):
            self._tell(events.PluginSilent(node, silent=False))
        self._silent.clear()
        # Of a ConfigMap that cannot be read an engine that begins knows nothing, and another one the last good one.
        self._configure(list_maps()[0])
        for _ in range(60):
            while self.under_way:
                self.on_bind_done()
            self.now += 600.0
            before = len(self._grants) + self.counts["bound"]
            self._decide(Unlimited())
            if not self.under_way and len(self._grants) + self.counts["bound"] == before:
                break
        self.verify()
        if not self._restarts:
            return
        waiting = {uid for uid, pod in self._pods.items() if not pod.spec.node_name}
        old, self.engine = self.engine, Engine(_CONFIG)
        self._start()
        self._decide(Unlimited())
        missed = set(self.under_way) & waiting
        if missed:
            raise LostError(f"seed {self.seed}: {sorted(missed)} fit, and waited: {old}")

    def _start(self) -> None:
        """Tell an engine that begins all that the API server has, in any order."""
        self._tell(events.Seen(self._map))
        there: dict[str, list[wire.Node] | list[wire.Pod]] = {
            "Node": list(self._nodes.values()),
            "Pod": list(self._pods.values()),
        }
        for kind, found in there.items():
            self._tell(events.ListBegins(kind, names.SCHEDULER if kind == "Pod" else ""))
            self.rng.shuffle(found)
            for one in found:
                self._tell(events.Seen(one))
            self._tell(events.ListEnds(kind, names.SCHEDULER if kind == "Pod" else ""))
        self._tell(events.ListBegins("Pod"))
        self._tell(events.ListEnds("Pod"))

    def _tell(self, event: events.Event) -> None:
        self.engine.handle(event, self.now)

    def _decide(self, allowance: Any) -> None:
        outcome = self.engine.decide(self.now, allowance)
        for evict in outcome.evicts:
            for victim in evict.victims:
                self.counts["evicted"] += 1
                self._tell(events.EvictDone(victim))
                self._remove(victim)
        for bind in outcome.binds:
            self.hold(bind)
            self.under_way[bind.uid] = bind

    def add_twin(self, uid: str) -> str:
        """Have another pod like one that is there, of which the engine is not told; its uid."""
        name = f"twin-{next(self._serial)}"
        self._pods[name] = self._pods[uid]
        return name

    # The second ledger.

    def hold(self, bind: Bind) -> None:
        self._grants[bind.uid] = bind.devices
        if bind.devices and bind.node in self._silent:
            raise LostError(f"seed {self.seed}: {bind.uid} got devices of {bind.node}, whose plugin is silent")  # fmt: skip
        if not bind.devices:
            self._judge_counted(bind)
        for grant in bind.devices:
            driver = self.engine.ask(CardDrivers())[grant.driver]
            cards = {card.id: card for card in list_cards(driver, self._nodes[bind.node])}
            for use in {use.uuid: use for slot in grant.slots for use in slot}.values():
                device = driver.find_whole(use.uuid)
                self._holders[bind.node, device].add(bind.uid)
                self._judge(bind, cards.get(device), driver)

    def _judge_counted(self, bind: Bind) -> None:
        """Of devices that are only counted a node gives no more than it offers."""
        for resource in filter(partial(count_devices, self._pods[bind.uid]), _COUNTED):
            self._holders[bind.node, resource].add(bind.uid)
            self.counts[f"bound by {resource}"] += 1
            offered = int((self._nodes[bind.node].status.allocatable or {}).get(resource, 0))
            held = sum(count_devices(self._pods[uid], resource) for uid in self._holders[bind.node, resource])  # fmt: skip
            if held > offered:
                raise LostError(f"seed {self.seed}: {bind.node} offers {offered} {resource}, {held} are held")  # fmt: skip

    def _judge(self, bind: Bind, card: Card | None, driver: CardDriver) -> None:
        """A device that is given to a pod is there, and has enough for all that hold it."""
        if card is None:
            raise LostError(f"seed {self.seed}: {bind.uid} got a device that {bind.node} has not")
        if not card.healthy:
            raise LostError(f"seed {self.seed}: {bind.uid} got {card.id} of {bind.node}, which is ill")  # fmt: skip
        sums, places = [0, 0, 0], []
        for uid in self._holders[bind.node, card.id]:
            peak = self._find_peak(uid, card.id, driver)
            sums = [a + b for a, b in zip(sums, peak, strict=True)]
            places += [
                (use.place.start, use.place.start + use.place.size)
                for use in self._list_uses(uid, card.id, driver)
                if use.place is not None
            ]
        # Percents of instances are rounded up, so together they may be more than 100.
        most = (card.mib, sums[1] if card.parts else card.cores, card.sharers)
        if any(n > limit for n, limit in zip(sums, most, strict=True)):
            raise LostError(f"seed {self.seed}: {card.id} of {bind.node} has {most}, {sums} are held")  # fmt: skip
        ends = [(start, end) for start, end in sorted(places)]
        if any(end > start for (_, end), (start, _) in itertools.pairwise(ends)):
            raise LostError(f"seed {self.seed}: {card.id} of {bind.node} is cut twice: {ends}")

    def _list_uses(self, uid: str, device: str, driver: CardDriver) -> list[CardUse]:
        slots = next((one.slots for one in self._grants[uid] if one.driver == driver.name), ())
        return [use for slot in slots for use in slot if driver.find_whole(use.uuid) == device]

    def _find_peak(self, uid: str, device: str, driver: CardDriver) -> tuple[int, int, int]:
        """What a pod holds of a device at most: its containers together, or one of those that run before them."""
        slots = next((one.slots for one in self._grants[uid] if one.driver == driver.name), ())
        kinds = [kind for kind, _, _ in list_containers(self._pods[uid])]
        stays, first = (0, 0, 0), (0, 0, 0)
        for kind, slot in zip(kinds, slots, strict=False):
            uses = [use for use in slot if driver.find_whole(use.uuid) == device]
            held = (sum(one.mem_mib for one in uses), sum(one.cores for one in uses), len(uses))
            if kind == ContainerKind.INIT:
                first = max(first[0], held[0]), max(first[1], held[1]), max(first[2], held[2])
            else:
                stays = stays[0] + held[0], stays[1] + held[1], stays[2] + held[2]
        return max(first[0], stays[0]), max(first[1], stays[1]), max(first[2], stays[2])

    def _release(self, uid: str) -> None:
        self._grants.pop(uid, None)
        for held in self._holders.values():
            held.discard(uid)

    def verify(self) -> None:
        checks.verify(self.engine._cluster)
        known = set(self.engine._cluster.pods)
        if known != set(self._pods):
            raise LostError(f"seed {self.seed}: not known {set(self._pods) ^ known}")

    # What happens.

    def on_pod_comes(self) -> None:
        if len(self._pods) >= _PODS:
            self.on_pod_goes()
            return
        name = f"p-{next(self._serial)}"
        chance = self.rng.random()
        priority = self.rng.choice((0, 0, 0, 10))
        if chance < 0.6:
            pod = make.pod(name=name, priority=priority)
            pod.spec.containers = [self.rng.choice(self.rng.choice(read_fleet().containers))]
        elif chance < 0.9:
            pod = workloads.pod(self.rng.choice(list(workloads.PODS)), name)
        else:
            resource = self.rng.choice((_SHARED, _INSTANCE))
            pod = make.pod(name=name, priority=priority, requests={resource: 1}, limits={resource: 1})  # fmt: skip
        self._pods[pod.metadata.uid] = pod
        self._tell(events.Seen(pod))

    def on_pod_goes(self) -> None:
        if self._pods:
            self._remove(self.rng.choice(list(self._pods)))

    def _remove(self, uid: str) -> None:
        if self._pods.pop(uid, None) is None:
            return
        self._release(uid)
        if self.under_way.pop(uid, None) is not None:
            self._tell(events.BindFailed(uid, "it is gone", gone=True))
        self._tell(events.Gone("Pod", uid))

    def on_decision(self) -> None:
        some = SpentAllowance(self.rng.randrange(8), (self.rng.randrange(4),) * int(Work.STEP))
        self._decide(some if self.rng.random() < 0.3 else Unlimited())

    def on_bind_done(self) -> None:
        if self.under_way:
            uid = self.rng.choice(list(self.under_way))
            self._bind(self.under_way.pop(uid))
            self._tell(events.BindDone(uid))
            self._tell(events.Seen(self._pods[uid]))

    def _bind(self, bind: Bind) -> None:
        """The API server takes a bind: node and annotations at once."""
        drivers = self.engine.ask(CardDrivers())
        marks = answers.write_answers(drivers, bind.node, bind.devices, int(self.now))
        before = self._pods[bind.uid]
        notes = {**(before.metadata.annotations or {}), **marks.annotations}
        meta = msgspec.structs.replace(before.metadata, annotations=notes)
        spec = msgspec.structs.replace(before.spec, node_name=bind.node)
        self._pods[bind.uid] = msgspec.structs.replace(before, metadata=meta, spec=spec)
        self.counts["bound"] += 1
        self.counts.update(f"bound by {grant.driver}" for grant in bind.devices)

    def on_bind_failed(self) -> None:
        """Its node is locked by another pod, or the API server says no."""
        if self.under_way:
            uid = self.rng.choice(list(self.under_way))
            del self.under_way[uid]
            self._release(uid)
            self._tell(events.BindFailed(uid, "the node is locked"))

    def on_plugin_silent(self) -> None:
        node = self.rng.choice(list(self._nodes))
        silent = node not in self._silent
        (self._silent.add if silent else self._silent.discard)(node)
        self._tell(events.PluginSilent(node, silent=silent))

    def on_health_changes(self) -> None:
        """A card of HAMi's register becomes ill or well."""
        node = self.rng.choice([one for one in self._nodes.values() if one.metadata.name[0] == "h"])
        notes = dict(node.metadata.annotations or {})
        text = notes.get(names.HAMI_REGISTER, "")
        if text.startswith("["):
            cards = msgspec.json.decode(text)
            card = self.rng.choice(cards)
            card["health"] = not card["health"]
            self.rng.shuffle(cards)
            notes[names.HAMI_REGISTER] = msgspec.json.encode(cards).decode()
        self._replace(node, notes)

    def on_register_goes_and_returns(self) -> None:
        """A plugin ends and takes its register away; later it registers again."""
        node = self.rng.choice(list(self._nodes.values()))
        bare = msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, annotations=None))  # fmt: skip
        self._tell(events.Seen(bare))
        if self.rng.random() < 0.5:
            self.engine.decide(self.now, SpentAllowance(0, (0,) * int(Work.STEP)))
        self._tell(events.Seen(node))

    def on_node_leaves_and_returns(self) -> None:
        node = self.rng.choice(list(self._nodes.values()))
        self._tell(events.Gone("Node", node.metadata.name))
        self._silent.discard(node.metadata.name)
        self._tell(events.Seen(node))

    def _replace(self, node: wire.Node, notes: dict[str, str]) -> None:
        found = msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, annotations=notes))  # fmt: skip
        self._nodes[node.metadata.name] = found
        self._tell(events.Seen(found))

    def on_configuration_changes(self) -> None:
        """HAMi's ConfigMap is edited, and everything is read again, as the operator does it."""
        if self.rng.random() >= 0.9:
            self._configure(self.rng.choice(list_maps()))

    def _configure(self, text: str) -> None:
        self._map = msgspec.structs.replace(self._map, data={"device-config.yaml": text})
        self._tell(events.Seen(self._map))
        found: list[wire.Node | wire.Pod] = [*self._nodes.values(), *self._pods.values()]
        for one in found:
            self._tell(events.Seen(one))

    def on_restart(self) -> None:
        """Another replica takes over: some binds that were under way are done, the others are lost."""
        if self.rng.random() < 0.9 or not self._restarts:
            return
        for uid, bind in self.under_way.items():
            if self.rng.random() < 0.5:
                self._bind(bind)
            else:
                self._release(uid)
        self.under_way.clear()
        self._silent.clear()
        self.engine = Engine(_CONFIG)
        self._start()
