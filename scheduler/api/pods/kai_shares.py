"""Shares of cards in KAI's annotations: what a pod that KAI has placed holds, and why Evenkeel places no such pod.

KAI's binder serves a share: it has a pod of its own request the whole card, and shows the card to the containers. Without
it no container gets a card, because the containers themselves request none from the kubelet.

Source: KAI-Scheduler (2026-03), ``pkg/scheduler/api/pod_info``, ``pkg/binder/plugins/gpusharing/gpu-request``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from scheduler.api import names, values
from scheduler.errors import BadInput, Mistake

_MILLIONTHS = 1_000_000
_PERCENT = 100
_NUMBER_MAX = 2**31
# No number has more characters.
_TEXT_MAX = 32
# With a point or without one; neither a sign nor an exponent.
_DECIMAL = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")


class Share(NamedTuple):
    """A share of cards.

    Attributes:
        cards: of so many cards; 0: it is not known of how many.
        millionths: so much of each, rounded up; 0 for a share in MiB.
        mib: so many MiB of each; 0 for a share that is a part.
    """

    cards: int
    millionths: int
    mib: int


# What pods that share cards hold if their annotations cannot be read: each card as a whole.
UNREADABLE = Share(0, _MILLIONTHS, 0)


def read_share(texts: Mapping[str, str]) -> Share | None:
    """Read which share of cards a pod with these annotations wants; None if it wants none.

    Raises:
        BadInput: an annotation that KAI's webhook refuses.
    """
    if names.KAI_SHARES.isdisjoint(texts):
        return None
    has_part, has_mib = names.KAI_FRACTION in texts, names.KAI_GPU_MEMORY in texts
    if has_part and has_mib:
        text = f"may not stand beside {names.KAI_FRACTION}; give one of them"
        raise BadInput(_name(names.KAI_GPU_MEMORY), text)
    if not (has_part or has_mib):
        text = f"means nothing without {names.KAI_FRACTION} or {names.KAI_GPU_MEMORY}"
        raise BadInput(_name(names.KAI_SHARED_CARDS), text)
    cards = _read_count(texts, names.KAI_SHARED_CARDS) if names.KAI_SHARED_CARDS in texts else 1
    if has_mib:
        return Share(cards, 0, _read_count(texts, names.KAI_GPU_MEMORY))
    return Share(cards, _read_part(texts[names.KAI_FRACTION]), 0)


def refuse_share(share: Share) -> Mistake:
    """Say why a pod with a share is not placed, and what it can request in its place."""
    key = names.KAI_GPU_MEMORY if share.mib else names.KAI_FRACTION
    wanted = f"{names.GPU}: {share.cards}"
    if share.mib:
        wanted += f" and {names.GPU_MEMORY}: {share.mib}"
    else:
        percent = -(-share.millionths * _PERCENT // _MILLIONTHS)
        wanted += f" and {names.GPU_MEMORY_PERCENT}: {percent}"
    text = (
        "is not translated: the webhook for pods with devices writes such requests as what shares GPUs in the cluster when "
        f"a pod is created; turn it on, and create the pod anew, or request {wanted} in the limits of a container, on "
        "nodes with HAMi's device plugin"
    )
    return Mistake(_name(key), text)


def _name(key: str) -> str:
    return f"metadata.annotations[{key}]"


def _read_count(texts: Mapping[str, str], key: str) -> int:
    text = texts[key]
    found = int(text) if text.isascii() and text.isdecimal() and len(text) <= _TEXT_MAX else 0
    if not 0 < found < _NUMBER_MAX:
        wanted = "a number of MiB from 1" if key == names.KAI_GPU_MEMORY else "a number from 1"
        raise BadInput(_name(key), f"{values.quote(text)} is not {wanted}")
    return found


def _read_part(text: str) -> int:
    """Read a part in millionths, rounded up."""
    is_decimal = len(text) <= _TEXT_MAX and _DECIMAL.fullmatch(text)
    found = Fraction(text) if is_decimal else Fraction(0)
    if not 0 < found < 1:
        wanted = "a decimal between 0 and 1, such as 0.5"
        raise BadInput(_name(names.KAI_FRACTION), f"{values.quote(text)} is not {wanted}")
    return -(-found * _MILLIONTHS // 1)
