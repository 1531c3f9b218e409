"""Questions about storage, as it was told and not as it was decided."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from scheduler.engine.questions.contract import Fact
from scheduler.state.volumes.objects import Claim, ClaimKey, Volume


class KnownClaim(Fact[Claim | None], frozen=True):
    """What is known of a volume claim; None when it is not there."""

    key: ClaimKey


class KnownVolume(Fact[Volume | None], frozen=True):
    """What is known of a volume; None when it is not there."""

    name: str


class MovedDrivers(Fact[AbstractSet[str]], frozen=True):
    """The plugins in Kubernetes' own tree whose volumes a CSI driver serves on a node instead."""

    node: str
