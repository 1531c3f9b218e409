"""What keeps pods off nodes, as bits for the reasons, and which changes could end it according to each rule."""

from __future__ import annotations

import numpy as np

from scheduler.api.door.decisions import Barriers
from scheduler.plugins.contract import ANYTHING, Asked, Held, Hint, Rule
from scheduler.plugins.rules import node_affinity, resources_fit, volume_claims
from scheduler.plugins.table import REASONS, RULES, Needs
from scheduler.schema import columns as c

_COUNTING = tuple(rule for rule in RULES if rule.domain)


def _first(rule: Rule) -> int:
    return 1 << next(i for i, (owner, _) in enumerate(REASONS) if owner is rule)


_SHORT = _first(resources_fit.RULE)
# For a pod that no node can take because of its claims, and for nodes without a label that the pod requires.
OF_CLAIMS, LACKS_LABEL = Barriers(_first(volume_claims.RULE)), Barriers(_first(node_affinity.RULE))


def of_bits(bits: c.Ints) -> Barriers:
    """The rules that refuse rows, by the rows' refusal bits [W, n]; every row is refused."""
    lowest = bits[0] & -bits[0]
    reasons = int(np.bitwise_or.reduce(lowest))
    if not reasons & _SHORT:
        return Barriers(reasons)
    words = np.bitwise_or.reduce(bits[:, lowest == _SHORT], axis=1).tolist()
    whole = sum(word << (c.WORD * i) for i, word in enumerate(words))
    return Barriers(reasons, whole >> len(REASONS))


def is_short_of(position: int) -> Barriers:
    """Nodes have too little of a requested resource; the number is its place among the requested ones."""
    return Barriers(_SHORT, 1 << position)


def hints(asked: Asked, needs: Needs, found: Barriers) -> list[Hint]:
    """The hints of the rules that keep such pods off nodes; ``needs`` is what rules about other pods read from them."""
    wanted = resources_fit.wanted(asked)
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
