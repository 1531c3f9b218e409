"""What pods hold of every device, by the API server's objects alone, and what must hold in every state."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tests.operator import audit
from tests.soak.holdings import (
    BIND_PHASE,
    NEURON,
    NVIDIA,
    Device,
    Place,
    Use,
    is_over,
    read_places,
    read_register,
    read_uses,
)

Json = dict[str, Any]
# A bind is decided a moment before it is written: so old may be what it was decided by. A leader that was stopped may write
# what it had decided, as long as no other has taken over.
LATE_SECONDS = 30.0
_COUNTED = ("cpu", "memory", "pods", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb")


class Entry(NamedTuple):
    """A pod that is on a node and has not ended."""

    name: str
    node: str
    uses: tuple[Use, ...]
    places: tuple[Place, ...]
    requests: Counter[str]


class Ledger:
    """Pods by node, and all that was wrong so far.

    Args:
        vendors: by node, what the devices of other vendors than NVIDIA have.

    Attributes:
        wrongs: what was wrong, in words, each once.
    """

    def __init__(self, vendors: Mapping[str, Mapping[str, Device]]) -> None:
        self.wrongs: dict[str, float] = {}
        self._vendors = vendors
        self._registered: dict[str, dict[str, Device]] = {}
        self._ill_since: dict[tuple[str, str], float] = {}
        self._offered: dict[str, Json] = {}
        self._gone_since: dict[str, float] = {}
        self._entries: dict[str, dict[str, Entry]] = defaultdict(dict)
        self._where: dict[str, str] = {}

    def see_node(self, node: Json, now: float) -> None:
        name = node["metadata"]["name"]
        self._gone_since.pop(name, None)
        self._offered[name] = node["status"].get("allocatable") or {}
        # A register that is removed or cannot be read takes nothing back from pods that run.
        for id_, device in read_register(node).items():
            self._registered.setdefault(name, {})[id_] = device
            if device.healthy:
                self._ill_since.pop((name, id_), None)
            else:
                self._ill_since.setdefault((name, id_), now)

    def drop_node(self, name: str, now: float) -> None:
        self._gone_since[name] = now

    def see_pod(self, pod: Json, now: float) -> None:
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        if is_over(pod) or not node:
            self._release(uid)
            return
        meta = pod["metadata"]
        before = self._where.get(uid)
        entry = Entry(
            f"{meta['namespace']}/{meta['name']}",
            node,
            tuple(use for use in read_uses(pod) if not (use.is_init and _is_initialized(pod))),
            tuple(read_places(pod)),
            audit.requests(pod["spec"]) + Counter(pods=1),
        )
        known = self._entries[node].get(uid)
        if before is not None and before != node:
            self._wrong(f"{entry.name} is on {node}, and was on {before}", now)
        self._judge_phase(pod, entry, now)
        if known == entry:
            return
        self._where[uid] = node
        self._entries[node][uid] = entry
        if known is None:
            self._judge_bind(pod, entry, now)
        for text in self.list_problems(node):
            self._wrong(text, now)

    def drop_pod(self, pod: Json) -> None:
        self._release(pod["metadata"]["uid"])

    def _release(self, uid: str) -> None:
        node = self._where.pop(uid, None)
        if node is not None:
            del self._entries[node][uid]

    def _wrong(self, text: str, now: float) -> None:
        self.wrongs.setdefault(text, now)

    def _judge_bind(self, pod: Json, entry: Entry, now: float) -> None:
        """The node is there, and so are the devices; none of them is known to be ill for long."""
        gone = self._gone_since.get(entry.node)
        if gone is not None and now - gone > LATE_SECONDS:
            self._wrong(f"{entry.name} was bound to {entry.node}, gone for {now - gone:.0f} s", now)
        devices = self._list_devices(entry.node)
        for use in entry.uses:
            device = devices.get(use.device)
            ill = self._ill_since.get((entry.node, use.device))
            is_ill = device is not None and not device.healthy and use.key != NVIDIA
            if is_ill or (ill is not None and now - ill > LATE_SECONDS):
                self._wrong(f"{entry.name} got {use.device} of {entry.node}, which is ill", now)
        is_ours = pod["spec"]["schedulerName"] == "evenkeel" and "nvidia.com/gpu" in entry.requests
        has_cards = any(use.key == NVIDIA for use in entry.uses)
        if is_ours and self._registered.get(entry.node) and not has_cards:
            self._wrong(f"{entry.name} is on {entry.node} without its cards", now)

    def _judge_phase(self, pod: Json, entry: Entry, now: float) -> None:
        """A pod runs only once the plugin has served it; else it was given what another one was to get."""
        phase = (pod["metadata"].get("annotations") or {}).get(BIND_PHASE)
        if pod["status"].get("phase") == "Running" and phase == "allocating":
            self._wrong(f"{entry.name} runs on {entry.node} and was not served", now)

    def _list_devices(self, node: str) -> dict[str, Device]:
        return {**self._registered.get(node, {}), **self._vendors.get(node, {})}

    def list_problems(self, node: str) -> list[str]:
        """What is wrong on a node now."""
        entries = list(self._entries[node].values())
        return [
            *self._judge_counted(node, entries),
            *self._judge_devices(node, entries),
            *self._judge_places(node, entries),
        ]

    def _judge_counted(self, node: str, entries: list[Entry]) -> Iterator[str]:
        """Of what is only counted no more is given than the node offers; whole GPUs are counted where no card is named."""
        offered = self._offered.get(node)
        if offered is None:
            return
        counted = _COUNTED if node in self._registered else (*_COUNTED, "nvidia.com/gpu")
        total = sum((one.requests for one in entries), Counter[str]())
        for resource in counted:
            if total[resource] > audit.read_number(str(offered.get(resource, 0))):
                held = [one.name for one in entries if one.requests[resource]]
                yield f"{node} offers {offered.get(resource, 0)} {resource}, {total[resource]} are held by {held}"

    def _judge_devices(self, node: str, entries: list[Entry]) -> Iterator[str]:
        """No device has more sharers, memory or cores in use than it has; one that is a pod's own has no other pod."""
        devices = self._list_devices(node)
        held: dict[str, list[tuple[Entry, tuple[int, int, int]]]] = defaultdict(list)
        for entry in entries:
            for id_ in {use.device for use in entry.uses}:
                held[id_].append((entry, find_peak(entry.uses, id_)))
        for id_, peaks in held.items():
            device = devices.get(id_)
            who = [(entry.name, peak) for entry, peak in peaks]
            if device is None:
                yield f"{node} has no {id_}, which {who} hold"
                continue
            sums = [sum(column) for column in zip(*(peak for _, peak in peaks), strict=True)]
            if any(use.key == NEURON for entry, _ in peaks for use in entry.uses):
                if sums[2] != _join_bits(peaks, id_):
                    yield f"cores of {id_} on {node} are given twice: {who}"
                continue
            # Percents of instances are rounded up, so together they may be more than 100.
            most = (device.sharers, device.mib, sums[2] if device.mode == "mig" else device.cores)
            if any(n > limit for n, limit in zip(sums, most, strict=True)):
                yield f"{id_} on {node} has {most} (sharers, MiB, cores), {sums} are held: {who}"
            is_own = any(
                use.cores == 100 and use.key == NVIDIA and use.device == id_
                for entry, _ in peaks
                for use in entry.uses
            )
            if is_own and len(peaks) > 1 and device.mode != "mig" and device.cores == 100:
                yield f"{id_} on {node} is one pod's own, and shared: {who}"

    def _judge_places(self, node: str, entries: list[Entry]) -> Iterator[str]:
        """Instances stand on places that their profile has, and not on each other."""
        devices = self._list_devices(node)
        taken: dict[tuple[str, int], str] = {}
        for entry in entries:
            for place in entry.places:
                device = devices.get(place.device)
                if device is not None and place[1:] not in device.places:
                    yield f"{entry.name} has {place} on {node}, which is no place of its card"
                for slot in range(place.start, place.start + place.size):
                    other = taken.setdefault((place.device, slot), entry.name)
                    if other != entry.name:
                        yield f"{other} and {entry.name} are on slot {slot} of {place.device} on {node}"


def _is_initialized(pod: Json) -> bool:
    """Whether the containers that run before the others are done: they hold nothing any more, as HAMi's scheduler counts."""
    conditions = pod["status"].get("conditions") or ()
    return any(one["type"] == "Initialized" and one["status"] == "True" for one in conditions)


def find_peak(uses: tuple[Use, ...], device: str) -> tuple[int, int, int]:
    """Sharers, MiB and cores of a device that a pod holds at most: its containers together, or one that runs before them."""
    stays: Counter[str] = Counter()
    first: dict[int, Counter[str]] = defaultdict(Counter)
    for use in uses:
        if use.device == device:
            held = first[use.container] if use.is_init else stays
            held.update(sharers=1, mib=use.mib, cores=use.cores)
    most = stays
    for one in first.values():
        most |= one
    return most["sharers"], most["mib"], most["cores"]


def _join_bits(peaks: list[tuple[Entry, tuple[int, int, int]]], device: str) -> int:
    """Cores that are told as bits: all of them together."""
    joined = 0
    for entry, _ in peaks:
        for use in entry.uses:
            joined |= use.cores if use.device == device else 0
    return joined
