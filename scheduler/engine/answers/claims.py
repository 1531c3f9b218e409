"""Answers about ResourceClaims."""

from __future__ import annotations

from scheduler.engine.answers.inside import Inside
from scheduler.engine.questions import claims as ask
from scheduler.engine.questions.contract import Steps
from scheduler.measure import claimed
from scheduler.state.claims.objects import Claim


def find_claim(inside: Inside, question: ask.KnownResourceClaim) -> Claim | None:
    """What is known of a ResourceClaim."""
    return inside.cluster.claims.claims.get(question.key)


def count_claims(inside: Inside, _: ask.CountedClaims) -> Steps[claimed.ClaimFigures]:
    """How many devices, pools and claims are in which state."""
    return claimed.measure_in_steps(inside.cluster)
