"""What HAMi adds to the score of a node, vendor by vendor (v2.10, ``ScoreNode`` and ``OverrideScore``), over plain records."""

import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

F = np.float32


@dataclass(frozen=True)
class Device:
    """A device before the pod: its place, the group that it is in, and how many pods are on it, by class."""

    id: str
    index: int = 0
    group: str = ""
    used: int = 0
    online: int = 0
    offline: int = 0


@dataclass(frozen=True)
class Pick:
    """A device that a container gets, and how much of its cores."""

    device: Device
    cores: int = 100


Picks = Sequence[Sequence[Pick]]


def score_numbers(notes: Mapping[str, str], policy: str, picks: Picks) -> float:
    """Metax's whole cards: what the node says of so many cards."""
    word = "losses" if policy == "binpack" else "scores"
    text = notes.get(f"metax-tech.com/gpu.topology.{word}")
    if text is None:
        return 0
    try:
        told = json.loads(text).get(str(sum(map(len, picks))), 0)
    except ValueError:
        told = 0
    return float(2000 - told)


def score_groups(picks: Picks, weight: int = 1) -> np.float32:
    """Vastai's dies by cards, Ascend's devices by networks."""
    total = F(0)
    for some in picks:
        if any(not pick.device.group for pick in some):
            return F(0)
        if some:
            counts = Counter(pick.device.group for pick in some)
            total = F(total + F(F(max(counts.values())) / F(len(some))))
    return F(total * F(weight))


def score_islands(devices: Sequence[Device], picks: Picks, *, alone: bool = True) -> float:
    """Kunlun's whole cards; ``alone``: the node has no other devices."""
    if not alone:
        return 0

    def count_bubbles(indices: set[int]) -> int:
        if not indices:
            return 1
        worth = {4: 0, 1: 2}
        left = sum(index < 4 for index in indices)
        return worth.get(left, 1) + worth.get(len(indices) - left, 1)

    before = count_bubbles({one.index for one in devices if one.used})
    after = count_bubbles({pick.device.index for some in picks for pick in some})
    return {-1: 3000, 0: 2000, 1: 1000, 2: 0}.get(after - before, 1000)


def score_zones(devices: Sequence[Device], picks: Picks) -> float:
    """Metax's shared cards that a pod gets as a whole: links that it gets, against links that the idle cards lose."""
    got = [pick.device for some in picks for pick in some if pick.cores == 100]
    if not got:
        return 0
    idle = [one for one in devices if not one.used]
    rest = [one for one in idle if one.id not in {each.id for each in got}]

    def score(some: Sequence[Device]) -> int:
        return sum(
            10
            for a, b in itertools.combinations(some, 2)
            if a.id != b.id and a.group and a.group == b.group
        )

    return 10 * score(got) - (score(idle) - score(got) - score(rest))


def weigh_neutral(score: float, policy: str) -> float:
    """A score that knows no policy counts more than anything else."""
    return score * (-10_000 if policy == "spread" else 10_000)
