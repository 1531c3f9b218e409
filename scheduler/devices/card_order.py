"""Translates a pod's annotations about cards into the order in which the kernel picks cards.

The order of cards is HAMi's (pkg/scheduler/policy, v2.10): cards are sorted by keys, and the kernel walks from the last
card to the first. Binpack sorts by rising score, so the walk takes the fullest card first; spread sorts by falling
score. Of equal scores the highest NUMA node comes first, of equal cards the highest index.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from scheduler.api.placement import Placement
from scheduler.api.pods.gpus import CardTypes, GpuAsk
from scheduler.kernels.devices import gpus
from scheduler.schema import shared
from scheduler.schema.columns import Flags, Ints

_SCORE, _NUMA, _USED, _INDEX = gpus.BY_SCORE, gpus.BY_NUMA, gpus.BY_USED, gpus.BY_INDEX
_KEYS = {"binpack": _SCORE, "spread": -_SCORE, "numa": _NUMA}


@lru_cache(maxsize=64)
def make_sort_keys(policy: str, *, numa_bind: bool) -> Ints:
    """Make the sort keys ``Ask.sort_keys`` [4] of a GPU policy, 0 after the last key; an empty policy is binpack.

    Callers share the array, because none of them writes to it.
    """
    policy = policy or "binpack"
    words = policy.split(",")
    if len(words) > 1 or words == ["numa"]:
        keys = [_KEYS[word] for word in dict.fromkeys(words) if word in _KEYS] or [-_SCORE]
        if numa_bind:
            keys = [_NUMA, *(key for key in keys if key != _NUMA)]
        keys.append(_INDEX)
    elif policy == "mutex":
        keys = [-_USED, _NUMA]
    elif numa_bind:
        keys = [-_NUMA, _SCORE] if policy == "binpack" else [_NUMA, -_SCORE]
    else:
        # topology-aware walks like spread: HAMi does the same if it has no scores of links.
        keys = [_SCORE if policy == "binpack" else -_SCORE, _NUMA]
    return shared.make_ints(*keys, *[0] * (4 - len(keys)))


def name_node_score(policy: str) -> str:
    """Name the score of a node policy, which is HAMi's, for explanations."""
    return f"hami-{policy}"


def is_mutex(placement: Placement) -> bool:
    """Whether pods of the placement accept only idle cards."""
    return "mutex" in placement.gpu_policy.split(",")


def is_linked(placement: Placement) -> bool:
    """Whether the policy chooses cards by the links between them."""
    return "topology-aware" in placement.gpu_policy.split(",")


def accept_models(ask: CardTypes | None, models: Sequence[str]) -> Flags:
    """Find the models [models] that use-gputype and nouse-gputype accept: they are substrings without regard to case."""
    if ask is None or not (ask.use_types or ask.nouse_types):
        return shared.make_all_set(len(models))
    return np.array(
        [
            (not ask.use_types or any(part in model.upper() for part in ask.use_types))
            and not any(part in model.upper() for part in ask.nouse_types)
            for model in models
        ],
        np.bool_,
    )


def accept_parts(ask: GpuAsk | None, models: Sequence[str]) -> Flags:
    """Find the models [models] that a pod accepts, and whose cards have the parts that its containers get."""
    accepted = accept_models(ask, models)
    if ask is None or ask.find_parts is None:
        return accepted
    return accepted & np.array([ask.find_parts(model) is not None for model in models], np.bool_)


def add_parts(containers: Ints, ask: GpuAsk | None, models: Sequence[str]) -> Ints:
    """Add what the containers get of cards of each model, as rows of ``Ask.containers``, where that depends on the model."""
    if ask is None or ask.find_parts is None:
        return containers
    none = ((0, 0),) * containers.shape[1]
    rows = [row for model in models for row in zip(*(ask.find_parts(model) or none), strict=True)]
    return np.vstack([containers, *np.array(rows, np.int64)]) if rows else containers


def accept_modes(ask: GpuAsk | None, modes: Sequence[str]) -> Flags:
    """Find the modes [modes] of cards that vgpu-mode contains (an empty mode is in every text)."""
    wanted = ask.vgpu_mode if ask else ""
    if not wanted:
        return shared.make_all_set(len(modes))
    return np.array([mode in wanted for mode in modes], np.bool_)


def accept_uuids(ask: GpuAsk | None, uuids: Sequence[str]) -> Flags:
    """Find the cards [uuids] that use-gpuuuid and nouse-gpuuuid accept; [0] if the pod has no such annotation."""
    if ask is None or not (ask.use_uuids or ask.nouse_uuids):
        return shared.make_all_set(0)
    use, nouse = set(ask.use_uuids), set(ask.nouse_uuids)
    return np.array([(not use or uuid in use) and uuid not in nouse for uuid in uuids], np.bool_)
