"""Answers about storage."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from scheduler.engine.answers.inside import Inside
from scheduler.engine.questions import volumes as ask
from scheduler.state.volumes.objects import Claim, Volume

_NONE: frozenset[str] = frozenset()


def find_claim(inside: Inside, question: ask.KnownClaim) -> Claim | None:
    """What is known of a volume claim."""
    return inside.cluster.storage.claims.get(question.key)


def find_volume(inside: Inside, question: ask.KnownVolume) -> Volume | None:
    """What is known of a volume."""
    return inside.cluster.storage.volumes.get(question.name)


def find_moved(inside: Inside, question: ask.MovedDrivers) -> AbstractSet[str]:
    """The plugins whose volumes a driver serves on a node instead."""
    drivers = inside.cluster.storage.uses.drivers.get(question.node)
    return _NONE if drivers is None else drivers.moved
