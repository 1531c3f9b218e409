"""The rules that keep pods off nodes, as one bit for each reason, and the changes that could end each refusal."""

from __future__ import annotations

import numpy as np

from scheduler.api.door.decisions import Barriers
from scheduler.plugins.contract import ANYTHING, Asked, Held, Hint, Rule
from scheduler.plugins.refusal import Refusal
from scheduler.plugins.rules import (
    dynamic_resources,
    node_affinity,
    resources_fit,
    volume_claims,
)
from scheduler.plugins.table import REASONS, RULES, Needs
from scheduler.schema import columns as c

_COUNTING = tuple(rule for rule in RULES if rule.domain)


def _find_first_bit(rule: Rule) -> int:
    return 1 << next(i for i, (owner, _) in enumerate(REASONS) if owner is rule)


_SHORT = _find_first_bit(resources_fit.RULE)
# The barriers of nodes without a label that the pod requires.
LACKS_LABEL = Barriers(_find_first_bit(node_affinity.RULE))
# The barriers of nodes on which the devices of claims cannot be used that are allocated already.
ELSEWHERE = Barriers(_find_first_bit(dynamic_resources.AVAILABLE))
_OF_VOLUMES = Barriers(_find_first_bit(volume_claims.RULE))
_OF_DEVICES = Barriers(_find_first_bit(dynamic_resources.REFUSED))


def find_barriers(refusal: Refusal) -> Barriers:
    """Find the barriers of a pod that no node can take because of its claims."""
    return _OF_DEVICES if refusal.rule == dynamic_resources.REFUSED.name else _OF_VOLUMES


def read_barriers(bits: c.Ints) -> Barriers:
    """Read the reasons of n refused rows from their refusal bits [W, n]."""
    lowest = bits[0] & -bits[0]
    reasons = int(np.bitwise_or.reduce(lowest))
    if not reasons & _SHORT:
        return Barriers(reasons)
    words = np.bitwise_or.reduce(bits[:, lowest == _SHORT], axis=1).tolist()
    whole = sum(word << (c.WORD * i) for i, word in enumerate(words))
    return Barriers(reasons, whole >> len(REASONS))


def make_shortage(position: int) -> Barriers:
    """Make the barriers of nodes with too little of one resource; ``position`` is its place among the requested ones."""
    return Barriers(_SHORT, 1 << position)


def list_hints(asked: Asked, needs: Needs, found: Barriers) -> list[Hint]:
    """List the hints of the rules that keep such pods off nodes.

    ``needs`` is what rules about other pods read from such pods.
    """
    wanted = resources_fit.list_amounts(asked)
    short = tuple(one for i, one in enumerate(wanted) if found.short >> i & 1)
    rules = {rule: None for i, (rule, _) in enumerate(REASONS) if found.reasons >> i & 1}
    of_others = dict(zip(_COUNTING, needs, strict=True))
    return [
        Hint(here=(ANYTHING,))
        if rule.hint is None
        else rule.hint(Held(asked.template, of_others.get(rule), short))
        for rule in rules
        if rule.domain is None or of_others[rule] is not None
    ]
