"""All features: what stands here occurs in random clusters, alone and in pairs.

A feature that changes what others wrote comes after them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from random import Random

from tests.differential.features import (
    claims,
    in_tree,
    local,
    nominated,
    peers,
    priorities,
    profiles,
    resources,
    running,
    volumes,
    words,
)
from tests.differential.worlds import Feature

FEATURES: tuple[Feature, ...] = (
    *priorities.FEATURES,
    *nominated.FEATURES,
    *resources.FEATURES,
    *words.FEATURES,
    *local.FEATURES,
    *peers.FEATURES,
    *running.FEATURES,
    *volumes.FEATURES,
    *in_tree.FEATURES,
    *claims.FEATURES,
    *profiles.FEATURES,
)


def choices(seed: int) -> list[tuple[Feature, ...]]:
    """Every feature alone, then every pair of them, each part in an order of the seed's own."""
    rng = Random(seed)
    alone = [(feature,) for feature in FEATURES]
    pairs: list[Sequence[Feature]] = list(combinations(FEATURES, 2))
    return [*rng.sample(alone, len(alone)), *(tuple(one) for one in rng.sample(pairs, len(pairs)))]
