"""What is whole in a cluster, counted from objects; and moves replayed one by one, each on a fresh engine.

Knows nothing of the scheduler's columns: cards are counted from the text of HAMi's annotations.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

from scheduler.config import Config
from scheduler.simulate.run import schedule

Json = dict[str, Any]
_LATE = "2026-06-01T00:00:00Z"
_REGISTER, _HELD = "hami.io/node-nvidia-register", "hami.io/vgpu-devices-allocated"


class Count(NamedTuple):
    """Figures of a cluster: the first two must not fall, the last two must not rise."""

    whole_cards: int
    idle_nodes: int
    broken_cards: int
    split_nodes: int

    def is_no_worse_than(self, other: Count) -> bool:
        """Whether nothing is lost."""
        more = self.whole_cards >= other.whole_cards and self.idle_nodes >= other.idle_nodes
        fewer = self.broken_cards <= other.broken_cards and self.split_nodes <= other.split_nodes
        return more and fewer

    @property
    def whole(self) -> int:
        """Cards and nodes that are whole."""
        return self.whole_cards + self.idle_nodes


class World(NamedTuple):
    """Nodes and pods as objects, by name."""

    nodes: Mapping[str, Json]
    pods: Mapping[str, Json]

    def list_objects(self) -> list[Json]:
        """All objects, as an API server lists them."""
        return [*copy.deepcopy([*self.nodes.values(), *self.pods.values()])]


class Went(NamedTuple):
    """What came of a move.

    Attributes:
        world: the cluster then.
        seat: the node and the cards where the moved pod is; empty for none.
        came: by name of a pod that waited: where it is.
    """

    world: World
    seat: tuple[str, tuple[str, ...]]
    came: Mapping[str, tuple[str, tuple[str, ...]]]


def find_seat(pod: Json) -> tuple[str, tuple[str, ...]]:
    """The node of a pod, and its cards; nothing for a pod that waits."""
    node = pod["spec"].get("nodeName", "")
    text = pod["metadata"].get("annotations", {}).get(_HELD, "") if node else ""
    return node, tuple(sorted(use.split(",")[0] for use in _split(text)))


def count(world: World) -> Count:
    """Count what is whole and what is broken."""
    total: dict[str, tuple[str, int, int]] = {}
    for name, node in world.nodes.items():
        for card in json.loads(node["metadata"]["annotations"][_REGISTER]):
            total[card["id"]] = name, card["devmem"], card["devcore"]
    used = {card: [0, 0] for card in total}
    busy = set()
    for pod in world.pods.values():
        if node := pod["spec"].get("nodeName"):
            busy.add(node)
            for use in _split(pod["metadata"].get("annotations", {}).get(_HELD, "")):
                card, _, mib, cores = use.split(",")[:4]
                used[card][0] += int(mib)
                used[card][1] += int(cores)
    held = {card for pod in world.pods.values() for card in find_seat(pod)[1]}
    broken = sum(used[card][0] < total[card][1] and used[card][1] < total[card][2] for card in held)
    split = 0
    for name in world.nodes:
        mine = {card for card, (node, *_) in total.items() if node == name}
        split += bool(mine & held) and bool(mine - held)
    return Count(len(total) - len(held), len(world.nodes.keys() - busy), broken, split)


def move(world: World, name: str, config: Config) -> Went:
    """Let a pod leave and come again: a fresh engine decides about all that wait, the new pod last.

    If a StatefulSet has not made the pod, the new pod comes while the old one is ending.
    """
    pods = {key: copy.deepcopy(pod) for key, pod in world.pods.items()}
    waiting = {key for key, one in pods.items() if "nodeName" not in one["spec"]}
    (owner,) = pods[name]["metadata"]["ownerReferences"]
    old, pods[name] = pods[name], _make_new(pods[name])
    if owner["kind"] != "StatefulSet":
        ending = copy.deepcopy(old)
        ending["metadata"] |= {"name": "ending", "uid": "ending", "deletionTimestamp": _LATE}
        pods["ending"] = ending
        _decide(world.nodes, pods, config)
        del pods["ending"]
    _decide(world.nodes, pods, config)
    after = World(world.nodes, pods)
    came = {key: find_seat(pods[key]) for key in sorted(waiting) if find_seat(pods[key])[0]}
    return Went(after, find_seat(pods[name]), came)


def _make_new(pod: Json) -> Json:
    new = copy.deepcopy(pod)
    del new["spec"]["nodeName"]
    new["metadata"].pop("annotations", None)
    new["metadata"]["creationTimestamp"] = _LATE
    new["status"] = {"phase": "Pending"}
    return new


def _decide(nodes: Mapping[str, Json], pods: dict[str, Json], config: Config) -> None:
    """Let a fresh engine decide about all that wait, and bind those that it places."""
    found = schedule(World(nodes, pods).list_objects(), config=config)
    for row in found["pods"]:
        if row["node"] is None or row["victims"]:
            continue
        mine = pods[row["name"]]
        mine["spec"]["nodeName"] = row["node"]
        mine["metadata"]["annotations"] = dict(row["annotations"])
        mine["status"] = {"phase": "Running", "startTime": _LATE}


def without(world: World, names: Sequence[str]) -> World:
    """The cluster without some pods."""
    return World(world.nodes, {key: one for key, one in world.pods.items() if key not in names})


def list_gains(
    world: World, movable: Sequence[str], config: Config, depth: int
) -> Iterator[tuple[str, ...]]:
    """Every sequence of at most so many moves after each of which nothing is lost, and after the last something gained."""
    before = count(world)
    for n in range(1, depth + 1):
        for names in permutations(movable, n):
            at, came = world, list[str]()
            for name in names:
                went = move(at, name, config)
                if not went.seat[0] or went.seat == find_seat(at.pods[name]):
                    break
                at, came = went.world, [*came, *went.came]
                if not count(without(at, came)).is_no_worse_than(before):
                    break
            else:
                if count(without(at, came)).whole > before.whole or came:
                    yield names


def _split(text: str) -> list[str]:
    return [use for part in text.split(";") for use in part.split(":") if use.strip()]
