"""What a replica knows about the lease: who holds it, and its own hold on it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple


class Holder(StrEnum):
    """Who holds the lease, as one replica sees it."""

    SELF = "self"
    REPLICA = "replica"
    # Another scheduler that takes turns by the same lease.
    PEER = "peer"
    OTHER = "other"
    NOBODY = "nobody"


class Held(NamedTuple):
    """What a replica knows about its own hold on the lease; replaced as a whole, so any thread may read it.

    Attributes:
        until: until when the replica may act, by its clock.
        term: counts the times that the replica could act again; what was decided in one term is not carried out in
            another.
        reign: counts the times that the replica took the lease over, even from itself without knowing it.
        is_clean: whether, as far as is known here, the lease was given back with nothing on its way before this reign,
            or did not exist.
    """

    until: float = 0.0
    term: int = 0
    reign: int = 0
    is_clean: bool = False


class FoundLease(NamedTuple):
    """The lease as it was found last; replaced as a whole.

    Attributes:
        holder: who holds the lease; empty if it has no holder.
        spec: the record that the holder wrote.
        at: since when the record has been the same, by this replica's clock.
        duration: seconds after which others may take the lease.
        is_stranger: whether the holder is no replica of Evenkeel.
    """

    holder: str = ""
    spec: Mapping[str, Any] = MappingProxyType({})
    at: float = 0.0
    duration: float = 0.0
    is_stranger: bool = False
