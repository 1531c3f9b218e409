"""How scarce places are now: to lose a place costs nothing if the cluster has plenty of such places.

For all nodes of one sort: C is what they are worth, U the worth in use, left the worth that is free; D is departures per
arrival. The next pods, until other pods leave, could request

    soon = (1 − D) · left + D · min(left, 0.15 U + 2 √(U · mean))

where mean is the mean worth of a pod. If no pods leave, that is all that is left; otherwise it is how far a steady
stream of pods swings. A place for shape k is useful to pods that are worth at least as much as k. These pods have the
share B_k of the demand. The places that they need, with one and a half times their own swing, are

    enough_k = B_k · (1 + 1.5 √(val_k / (B_k · soon)))
    scarce_k = clip(1 − (P_k − enough_k) / max(1 − enough_k, 0.001) / (0.6 + 0.6 D), 0, 1)

where P_k is the worth of all places for k, in parts of ``soon``. The best filling counts fully if ``left`` equals
``soon``, and not at all if ``left`` is half as much again. While less than two fifths of the worth is in use, spreading
decides (and unevenness counts a tenth); from nine tenths on, packing decides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduler.kernels.modes import places as kernel
from scheduler.modes.places import Learnt
from scheduler.schema import columns as c
from scheduler.schema import places as p

# Scarcity changes in steps, so that small changes do not make tables again.
_STEPS = 20
_FULL, _MIX, _REST, _USED, _UNEVEN = 2.0, 6.0, 0.1, 50.0, 30_000.0
# If all sizes are new: how much less places and fillings are worth, and how much more parts of places are worth.
_NEW_FULL, _NEW_MIX, _NEW_PART = 0.7, 0.8, 0.5
# ``Scarcity.packs`` while spreading alone decides, and the factor of unevenness then: empty nodes have room enough.
_SPREADS, _UNEVEN_EARLY = -1.0, 0.1
# Departures make fillings count less, because a node that is filled up today is not filled up tomorrow.
_MIX_FALL = 2.0 / 3.0


class Scarcity(NamedTuple):
    """The scarcity of places on one sort of nodes, at one time."""

    scarce: tuple[float, ...]  # [K] 0..1 by typical pod
    mix: float  # 0..1 how much the best filling counts
    packs: float  # from -1, spread, to 1, pack


def measure_scarcity(
    learnt: Learnt, nodes: c.Nodes, scratch: c.Scratch, departures: float
) -> Scarcity:
    """Measure how scarce the places are now; ``departures`` per arrival, 0..1."""
    n_typical = learnt.val.size
    found = np.zeros(2 + n_typical)
    kernel.count_places(nodes, learnt.places, learnt.rows, scratch, found)
    left, in_use = max(0.0, found[0]), max(0.0, found[1])
    whole = max(left + in_use, 1e-9)
    packs = 2 * _clip_part((in_use / whole - 0.4) / 0.5) - 1
    swing = min(left, 0.15 * in_use + 2 * np.sqrt(in_use * learnt.mean))
    soon = (1 - departures) * left + departures * swing
    if soon <= 0:
        return Scarcity((1.0,) * n_typical, 1.0, _round_to_step(packs))
    enough = learnt.above * (1 + 1.5 * np.sqrt(learnt.val / (learnt.above * soon)))
    plenty = found[2:] * learnt.val / soon
    beyond = (plenty - enough) / np.maximum(1 - enough, 0.001) / (0.6 + 0.6 * departures)
    scarce = np.rint(np.clip(1 - beyond, 0, 1) * _STEPS) / _STEPS
    mix = _clip_part((1.5 - left / soon) / 0.5)
    return Scarcity(tuple(scarce.tolist()), _round_to_step(mix), _round_to_step(packs))


def make_weights(scarcity: Scarcity, departures: float, new: float) -> c.Floats:
    """Make ``Places.weights``; ``new``: the share of sizes that do not come again, 0..1."""
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


def _clip_part(x: float) -> float:
    return min(1.0, max(0.0, x))


def _round_to_step(x: float) -> float:
    return round(x * _STEPS) / _STEPS
