"""Translates a pod's annotations about cards into the order in which the kernel picks cards.

The order of cards is HAMi's (pkg/scheduler/policy, v2.10): keys are sorted and the walk goes from
the last card to the first. Binpack sorts by score, so the fullest card is taken first; spread sorts
by score descending; equal scores go to the highest numa node, equal cards to the highest index.
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
def sort_keys(policy: str, *, numa_bind: bool) -> Ints:
    """Sort keys of a GPU policy for ``Ask.sort_keys`` [4], 0 beyond the last; an empty one is binpack.

    Shared, because no caller writes to them.
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
        # topology-aware walks like spread; without link scores that is also its answer.
        keys = [_SCORE if policy == "binpack" else -_SCORE, _NUMA]
    return shared.ints(*keys, *[0] * (4 - len(keys)))


def node_score_name(policy: str) -> str:
    """The name of a node policy's score in explanations: the policy is HAMi's."""
    return f"hami-{policy}"


def is_mutex(placement: Placement) -> bool:
    """Whether only idle cards will do."""
    return "mutex" in placement.gpu_policy.split(",")


def models_ok(ask: CardTypes | None, models: Sequence[str]) -> Flags:
    """[models] whether use-gputype and nouse-gputype accept a model: case-blind substrings."""
    if ask is None or not (ask.use_types or ask.nouse_types):
        return shared.every(len(models))
    return np.array(
        [
            (not ask.use_types or any(part in model.upper() for part in ask.use_types))
            and not any(part in model.upper() for part in ask.nouse_types)
            for model in models
        ],
        np.bool_,
    )


def modes_ok(ask: GpuAsk | None, modes: Sequence[str]) -> Flags:
    """[modes] whether vgpu-mode contains a card's mode (an empty mode is in every text)."""
    wanted = ask.vgpu_mode if ask else ""
    if not wanted:
        return shared.every(len(modes))
    return np.array([mode in wanted for mode in modes], np.bool_)


def uuids_ok(ask: GpuAsk | None, uuids: Sequence[str]) -> Flags:
    """[uuids] whether use-gpuuuid and nouse-gpuuuid accept a card; [0] if the pod has no such annotation."""
    if ask is None or not (ask.use_uuids or ask.nouse_uuids):
        return shared.every(0)
    use, nouse = set(ask.use_uuids), set(ask.nouse_uuids)
    return np.array([(not use or uuid in use) and uuid not in nouse for uuid in uuids], np.bool_)
