"""How scarce places are now: losing a place that the cluster has plenty of costs nothing.

Of all nodes of a sort: C what they are worth, U in use, left free; D departures per arrival. What the next pods
could ask for, before others leave, is

    soon = (1 − D) · left + D · min(left, 0.15 U + 2 √(U · mean))

with the mean worth of a pod: all that is left where nobody leaves, else what a steady stream swings by. Of it a
place for shape k is of use to pods that are worth as much or more, their share B_k of the demand, with half as
much again of its own swing:

    enough_k = B_k · (1 + 1.5 √(val_k / (B_k · soon)))
    scarce_k = clip(1 − (P_k − enough_k) / max(1 − enough_k, 0.001) / (0.6 + 0.6 D), 0, 1)

where P_k is the worth of all its places, in parts of ``soon``. The best filling counts in full where what is left
is what is soon asked for, and not at all where it is half as much again. Spreading rules while the nodes are in
use by less than two fifths (unevenness counts a tenth then), packing from nine tenths on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduler.kernels.modes import places as kernel
from scheduler.modes.places import Learnt
from scheduler.schema import columns as c
from scheduler.schema import places as p

# What is judged anew changes in steps, so that tables are not made anew for nothing.
_STEPS = 20
_FULL, _MIX, _REST, _USED, _UNEVEN = 2.0, 6.0, 0.1, 50.0, 30_000.0
# By how much the sizes of the demand being new takes from the worth of places and fillings, and adds to parts.
_NEW_FULL, _NEW_MIX, _NEW_PART = 0.7, 0.8, 0.5
# ``Scarcity.packs`` where spreading rules; on nodes that are mostly empty what is uneven has room enough.
_SPREADS, _UNEVEN_EARLY = -1.0, 0.1
# Departures make fillings matter less: what is filled up today is not so tomorrow.
_MIX_FALL = 2.0 / 3.0


class Scarcity(NamedTuple):
    """Of one sort of nodes at a time."""

    scarce: tuple[float, ...]  # [K] 0..1
    mix: float  # 0..1, of the best filling
    packs: float  # -1..1: spread, pack


def measure_scarcity(
    learnt: Learnt, nodes: c.Nodes, scratch: c.Scratch, departures: float
) -> Scarcity:
    """What is scarce by now."""
    n_typical = learnt.val.size
    found = np.zeros(2 + n_typical)
    kernel.count(nodes, learnt.places, learnt.rows, scratch, found)
    left, in_use = max(0.0, found[0]), max(0.0, found[1])
    whole = max(left + in_use, 1e-9)
    packs = 2 * _clip((in_use / whole - 0.4) / 0.5) - 1
    swing = min(left, 0.15 * in_use + 2 * np.sqrt(in_use * learnt.mean))
    soon = (1 - departures) * left + departures * swing
    if soon <= 0:
        return Scarcity((1.0,) * n_typical, 1.0, _rounded(packs))
    enough = learnt.above * (1 + 1.5 * np.sqrt(learnt.val / (learnt.above * soon)))
    plenty = found[2:] * learnt.val / soon
    beyond = (plenty - enough) / np.maximum(1 - enough, 0.001) / (0.6 + 0.6 * departures)
    scarce = np.rint(np.clip(1 - beyond, 0, 1) * _STEPS) / _STEPS
    mix = _clip((1.5 - left / soon) / 0.5)
    return Scarcity(tuple(scarce.tolist()), _rounded(mix), _rounded(packs))


def weights(scarcity: Scarcity, departures: float, new: float) -> c.Floats:
    """``Places.weights``; ``new``: how far sizes do not come again, 0..1."""
    out = np.zeros(p.N_WEIGHTS)
    out[p.STEP] = 1.0
    out[p.FULL] = _FULL * (1 - _NEW_FULL * new)
    out[p.PART] = _NEW_PART * new
    out[p.MIX] = _MIX * (1 - _MIX_FALL * departures) * (1 - _NEW_MIX * new) * scarcity.mix
    out[p.REST] = _REST * max(0.0, scarcity.packs)
    out[p.USED] = _USED * max(0.0, -scarcity.packs)
    out[p.UNEVEN] = _UNEVEN * new * max(0.0, 1 - 2 * departures)
    if scarcity.packs <= _SPREADS:
        out[p.UNEVEN] *= _UNEVEN_EARLY
    out[p.PACKED] = _REST
    return out


def _clip(x: float) -> float:
    return min(1.0, max(0.0, x))


def _rounded(x: float) -> float:
    return round(x * _STEPS) / _STEPS
