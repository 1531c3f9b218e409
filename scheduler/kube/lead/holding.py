"""What a replica knows of the lease: who holds it, and its own hold on it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple


class Holder(StrEnum):
    """Who holds the lease, as one replica sees it."""

    SELF = "self"
    REPLICA = "replica"
    # Another scheduler that takes its turns by the same lease.
    PEER = "peer"
    OTHER = "other"
    NOBODY = "nobody"


class Held(NamedTuple):
    """What a replica knows of its own hold on the lease; replaced as a whole, so any thread may read it.

    Attributes:
        until: until when it may act, by its clock.
        term: counts the times it could act again; what was decided in one term is not carried out in
            another.
        reign: counts the times it took the lease over, be it from itself without having known.
        is_clean: before this reign the lease was given back with nothing on its way, or there was none, as far as is
            known here.
    """

    until: float = 0.0
    term: int = 0
    reign: int = 0
    is_clean: bool = False


class FoundLease(NamedTuple):
    """The lease as it was found last; replaced as a whole.

    Attributes:
        holder: who holds it, empty when nobody does.
        spec: the record that the holder wrote.
        at: since when it has been the same, by this replica's clock.
        duration: seconds after which others may take it.
        is_stranger: the holder is none of Evenkeel's replicas.
    """

    holder: str = ""
    spec: Mapping[str, Any] = MappingProxyType({})
    at: float = 0.0
    duration: float = 0.0
    is_stranger: bool = False
