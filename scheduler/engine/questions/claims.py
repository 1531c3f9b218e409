"""Questions about ResourceClaims and their devices."""

from __future__ import annotations

from scheduler.api.claims.answers import ClaimKey
from scheduler.engine.questions.contract import Fact, Question, Steps
from scheduler.measure.claimed import ClaimFigures
from scheduler.state.claims.objects import Claim


class KnownResourceClaim(Fact[Claim | None], frozen=True):
    """What is known of a ResourceClaim as it was told, whatever is decided for it; None when it is not there."""

    key: ClaimKey


class CountedClaims(Question[Steps[ClaimFigures]], frozen=True):
    """How many devices, pools and claims are in which state; some ten thousand devices at a time."""
