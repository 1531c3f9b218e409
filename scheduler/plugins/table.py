"""The table of all rules, in kube-scheduler's order. Everything that works with rules reads this table.

A node has the reasons of the first rule that refuses it. Refusal bits are numbered through the table: one
for each reason, then one for each requested resource. If a rule refuses a node with several of its
bits only the first reason holds, as kube-scheduler's filters stop there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from scheduler.api import kube_plugins
from scheduler.api.kube_plugins import KubePlugins
from scheduler.api.pods.templates import PodTemplate, Whereabouts
from scheduler.plugins.contract import (
    Asked,
    Domain,
    DomainScore,
    Filter,
    Judged,
    Points,
    Reason,
    RowReasons,
    Rule,
    Score,
    Standing,
    Summary,
    Tally,
    fixed,
    summary,
)
from scheduler.plugins.rules import (
    card_wishes,
    gpu_cards,
    gpu_nodes,
    image_locality,
    mode,
    named_nodes,
    node_affinity,
    node_declared_features,
    node_ports,
    node_unschedulable,
    node_volume_limits,
    pod_affinity,
    resources_fit,
    taints,
    topology_spread,
    volume_binding,
    volume_claims,
    volume_restrictions,
    volume_zone,
    well_formed,
)
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.nodes import NodeTable

RULES: tuple[Rule, ...] = (
    named_nodes.CONTRADICTION,
    volume_claims.RULE,
    named_nodes.OTHERS,
    well_formed.RULE,
    node_unschedulable.RULE,
    taints.RULE,
    node_affinity.ENFORCED,
    node_affinity.RULE,
    node_ports.RULE,
    resources_fit.RULE,
    volume_restrictions.RULE,
    node_volume_limits.RULE,
    volume_binding.RULE,
    volume_zone.RULE,
    topology_spread.RULE,
    pod_affinity.RULE,
    node_declared_features.RULE,
    # Evaluated after all filters of kube-scheduler's, as its extenders are.
    gpu_cards.RULE,
    card_wishes.BY_CARD,
    card_wishes.TYPE_UNKNOWN,
    card_wishes.BY_TYPE,
    image_locality.RULE,
    mode.RULE,
    gpu_nodes.RULE,
)

# The rule and the reason of each refusal bit.
REASONS: tuple[tuple[Rule, Reason], ...] = tuple(
    (rule, reason) for rule in RULES for reason in rule.reasons
)
# Of each rule that refuses anything, its first bit: two rules may have one name.
FIRST_BIT = {
    rule: next(i for i, (owner, _) in enumerate(REASONS) if owner is rule)
    for rule in RULES
    if rule.reasons
}
_OF_REASONS = (1 << len(REASONS)) - 1
_FILTERS = tuple((r.name, r.filter, 1 << FIRST_BIT[r]) for r in RULES if r.filter)
SCORES: tuple[tuple[str, Score], ...] = tuple((r.name, r.score) for r in RULES if r.score)
ROWS = tuple(rule.row for rule in RULES if rule.row)
_DOMAINS: tuple[tuple[Rule, Domain], ...] = tuple(
    (rule, rule.domain) for rule in RULES if rule.domain
)
DOMAIN_SCORES: tuple[tuple[str, DomainScore], ...] = tuple(
    (rule.name, domain.score) for rule, domain in _DOMAINS if domain.score
)
_SCORE_OF = {name: i for i, (name, _) in enumerate(DOMAIN_SCORES)}

Needs = tuple[Hashable | None, ...]
# Of a pod that no rule about other pods concerns.
NO_NEEDS: Needs = (None,) * len(_DOMAINS)


class Tallied(NamedTuple):
    """All that rules count for one shape.

    Attributes:
        tallies: each with its figures for kernels, as far as these are the same on every node.
        scores: which of ``DOMAIN_SCORES`` they are part of.
    """

    tallies: tuple[tuple[list[int], Tally], ...]
    scores: tuple[int, ...]


NOTHING_TALLIED = Tallied((), ())


class Weights(NamedTuple):
    """The weights of ``SCORES`` and of ``DOMAIN_SCORES``; 0: the score does not count."""

    of_nodes: tuple[int, ...]
    of_domains: tuple[int, ...]


@lru_cache(maxsize=64)
def weights(plugins: KubePlugins) -> Weights:
    """The weights of a profile."""
    return Weights(
        tuple(plugins.weight(name, score.weight) for name, score in SCORES),
        tuple(plugins.weight(name, score.weight) for name, score in DOMAIN_SCORES),
    )


def needs(pod: Whereabouts, plugins: KubePlugins) -> Needs:
    """What each static filter reads from a pod of a profile: equal for pods for which it refuses the same nodes."""
    return tuple(
        None if name in plugins.not_asked else _need(rule, pod, plugins)
        for name, rule, _ in _FILTERS
    )


def _need(rule: Filter, pod: Whereabouts, plugins: KubePlugins) -> Hashable | None:
    return rule.needs(pod) if rule.of_profile is None else rule.of_profile(plugins)


def wants(template: PodTemplate, plugins: KubePlugins) -> Needs:
    """What each static score reads from a pod: equal for pods for which it gives the same points."""
    return tuple(
        _want(score, template, plugins) if weight else None
        for (_, score), weight in zip(SCORES, weights(plugins).of_nodes, strict=True)
    )


def _want(score: Score, template: PodTemplate, plugins: KubePlugins) -> Hashable | None:
    want = score.wants(template)
    if score.adds is None:
        return want
    added = score.adds(plugins)
    return None if want is None and added is None else (want, added)


def refusals(needs: Needs, nodes: NodeTable, rows: c.Ints) -> c.Ints:
    """[n] refusal bits of static filters."""
    bits = np.zeros(rows.size, np.int64)
    for (_, rule, bit), need in zip(_FILTERS, needs, strict=True):
        if need is not None:
            bits[rule.refuses(need, nodes, rows)] |= bit
    return bits


def objection(asked: Asked, nodes: NodeTable, row: int) -> str:
    """Why a node's words alone keep a pod off it by now; empty when they do not."""
    needed = needs(asked.template, asked.placement.kube)
    bits = refusals(needed, nodes, np.array([row], np.int64))
    return REASONS[int(first_bits(bits)[0])][1].text if bits[0] else ""


def could_host(pod: Whereabouts, nodes: NodeTable, rows: c.Ints) -> c.Flags:
    """[n] whether pods may go to a node by what it is, apart from states that come and go."""
    flags = np.ones(rows.size, np.bool_)
    for _, rule, _ in _FILTERS:
        need = _need(rule, pod, kube_plugins.DEFAULT) if rule.lasting else None
        if need is not None:
            flags &= ~rule.refuses(need, nodes, rows)
    return flags


def totals(asked: Asked) -> list[str]:
    """The sums over pods that kernels read for a shape and that no node offers."""
    return [total for row in ROWS if row.totals is not None for total in row.totals(asked)]


def is_learning(ask: c.Ask) -> bool:
    """Whether a compiled request is scored by the demand that was learnt."""
    return any(row.is_learning is not None and row.is_learning(ask) for row in ROWS)


def draws_lots(asked: Asked) -> bool:
    """Whether nodes draw lots anew for every decision."""
    return any(row.draws_lots is not None and row.draws_lots(asked) for row in ROWS)


def points(asked: Asked, ask: c.Ask, nodes: c.Nodes, board: c.Board, row: int) -> list[Points]:
    """The scores of a row by what is charged to it, on an up-to-date board."""
    return [
        one
        for rule in ROWS
        if rule.points is not None
        for one in rule.points(asked, ask, nodes, board, row)
    ]


def has_peers(template: PodTemplate, cluster: Cluster) -> bool:
    """Whether any rule about other pods may concern pods of a template."""
    return any(domain.concerns(template, cluster) for _, domain in _DOMAINS)


def peer_needs(pod: Standing, cluster: Cluster) -> Needs:
    """What each rule about other pods reads from a pod: equal for pods that these rules treat alike."""
    return tuple(domain.needs(pod, cluster) for _, domain in _DOMAINS)


def is_wide(needs: Needs) -> bool:
    """Whether a change on one node can help a pod that needs this on another."""
    return any(
        need is not None and domain.is_wide(need)
        for (_, domain), need in zip(_DOMAINS, needs, strict=True)
    )


def list_tallies(needs: Needs, cluster: Cluster) -> Tallied:
    """The counts of pods in domains of nodes that rules use for pods with these needs."""
    if needs == NO_NEEDS:
        return NOTHING_TALLIED
    found: list[tuple[list[int], Tally]] = []
    scores: list[int] = []
    for (rule, domain), need in zip(_DOMAINS, needs, strict=True):
        tallies = domain.tallies(need, cluster) if need is not None else ()
        for one in tallies:
            score = -1
            if one.kind in {c.SPREAD, c.SUM, c.POINTS}:
                if _SCORE_OF[rule.name] not in scores:
                    scores.append(_SCORE_OF[rule.name])
                score = scores.index(_SCORE_OF[rule.name])
            found.append((_figures(one, FIRST_BIT[rule], score), one))
    return Tallied(tuple(found), tuple(scores))


def _figures(tally: Tally, first_bit: int, score: int) -> list[int]:
    figures = [0] * c.N_TALLY
    figures[c.TALLY_KIND], figures[c.TALLY_GAIN] = tally.kind, tally.gain
    figures[c.TALLY_BIT] = first_bit + tally.reason
    figures[c.TALLY_NO_LABEL] = first_bit + tally.no_label
    figures[c.TALLY_KEY] = figures[c.TALLY_MASK] = figures[c.TALLY_EMPTY] = -1
    figures[c.TALLY_SCORE] = score
    for figure, value in tally.figures.items():
        figures[figure] = value
    return figures


def words_of_bits(template: PodTemplate) -> int:
    """How many words the refusal bits of a pod take: each requested resource has a bit."""
    return -(-(len(REASONS) + 1 + len(template.requests.amounts)) // c.WORD)


def first_bits(bits: c.Ints) -> c.Ints:
    """[n] the lowest refusal bit of each row, -1 for none: the reason that holds."""
    lowest = bits & -bits
    # Exact: a power of two is a float.
    numbers: c.Ints = np.where(lowest > 0, np.log2(np.maximum(lowest, 1)).astype(np.int64), -1)
    return numbers


def tell(judged: Judged) -> list[tuple[c.Ints, RowReasons]]:
    """Why the rows are refused, rule by rule: the positions of its rows, and its texts for them."""
    return [(at, _tell(rule, part)) for rule, at, part in _refusing(judged)]


def told_by_each(judged: Judged) -> list[tuple[str, c.Ints, RowReasons]]:
    """As ``told``, of every rule that refuses a row, not only of the first, with the rule's name."""
    found = []
    for rule in RULES:
        if not rule.reasons:
            continue
        first = FIRST_BIT[rule]
        mine = ((1 << len(rule.reasons)) - 1) << first
        at = np.flatnonzero(judged.bits[0] & mine)
        if at.size:
            bits = judged.bits[:, at]
            bits[0] &= ~(_OF_REASONS & ~mine)
            part = judged._replace(rows=judged.rows[at], bits=bits, first=first)
            found.append((rule.name, at, _tell(rule, part)))
    return found


def sum_up(judged: Judged) -> list[tuple[Rule, Summary]]:
    """Why the rows are refused, by rule, all rows of a rule together. Rows come by rank."""
    return [
        (rule, rule.sum_up(part) if rule.sum_up else summary(_tell(rule, part)))
        for rule, _, part in _refusing(judged)
    ]


def lasting(judged: Judged) -> c.Flags:
    """[n] which of the rows no eviction would help; as ``RowReasons.unresolvable`` of all rules, in less time."""
    flags = np.zeros(judged.rows.size, np.bool_)
    for rule, at, part in _refusing(judged):
        flags[at] = rule.lasting(part) if rule.lasting else _tell(rule, part).unresolvable
    return flags


def texts() -> list[str]:
    """Every reason that a node may be refused for, ``{}`` for a name that is put in."""
    found = [text for rule in RULES for text in rule.texts or _fixed_texts(rule)]
    return list(dict.fromkeys(found))


def _fixed_texts(rule: Rule) -> tuple[str, ...]:
    return tuple(reason.text for reason in rule.reasons)


def _refusing(judged: Judged) -> Iterator[tuple[Rule, c.Ints, Judged]]:
    """The rules that refuse any of the rows, with the positions of their rows and these alone."""
    firsts = first_bits(judged.bits[0])
    for rule in RULES:
        if not rule.reasons:
            continue
        first = FIRST_BIT[rule]
        at = np.flatnonzero((firsts >= first) & (firsts < first + len(rule.reasons)))
        if at.size:
            of_rule = judged._replace(rows=judged.rows[at], bits=judged.bits[:, at], first=first)
            yield rule, at, of_rule


def _tell(rule: Rule, part: Judged) -> RowReasons:
    if rule.tell:
        return rule.tell(part)
    numbers = FIRST_BIT[rule] + np.arange(len(rule.reasons))
    return fixed(rule.reasons, first_bits(part.bits[0])[:, None] == numbers)
