"""The table of all rules, in kube-scheduler's order. Everything that works with rules reads this table.

A node has the reasons of the first rule that refuses it. Refusal bits are numbered through the table: one bit for each
reason, then one bit for each requested resource. If a rule sets several of its bits for a node, only the first reason
holds, because kube-scheduler's filters stop at the first.
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
    Judged,
    Points,
    Reason,
    RowReasons,
    Rule,
    Score,
    Standing,
    Summary,
    Tally,
    count_texts,
    make_fixed_reasons,
)
from scheduler.plugins.rules import (
    card_wishes,
    dynamic_resources,
    foreign_devices,
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
from scheduler.schema import domains as of_domains
from scheduler.state.cluster import Cluster
from scheduler.state.nodes import NodeTable

RULES: tuple[Rule, ...] = (
    named_nodes.CONTRADICTION,
    volume_claims.RULE,
    dynamic_resources.REFUSED,
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
    dynamic_resources.ALLOCATED,
    dynamic_resources.AVAILABLE,
    node_declared_features.RULE,
    # Evaluated after all filters of kube-scheduler's, as its extenders are.
    foreign_devices.RULE,
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
# The first bit of each rule that has reasons. The rule is the key, because two rules may have one name.
FIRST_BIT = {
    rule: next(i for i, (owner, _) in enumerate(REASONS) if owner is rule)
    for rule in RULES
    if rule.reasons
}
_OF_REASONS = (1 << len(REASONS)) - 1
_FILTERS = tuple((r.name, r.filter, 1 << FIRST_BIT[r]) for r in RULES if r.filter)
_LASTING = tuple(rule for _, rule, _ in _FILTERS if rule.lasting)
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
# The needs of a pod that no rule about other pods concerns.
NO_NEEDS: Needs = (None,) * len(_DOMAINS)


class Tallied(NamedTuple):
    """Everything that rules count for one shape.

    Attributes:
        tallies: each with its figures for kernels, as far as the figures are the same on every node.
        scores: the scores that the tallies are part of, by their place in ``DOMAIN_SCORES``.
    """

    tallies: tuple[tuple[list[int], Tally], ...]
    scores: tuple[int, ...]


NOTHING_TALLIED = Tallied((), ())


class Weights(NamedTuple):
    """The weights of ``SCORES`` and of ``DOMAIN_SCORES``; 0: the score does not count."""

    of_nodes: tuple[int, ...]
    of_domains: tuple[int, ...]


@lru_cache(maxsize=64)
def get_weights(plugins: KubePlugins) -> Weights:
    """Return the weights of a profile."""
    return Weights(
        tuple(plugins.find_weight(name, score.weight) for name, score in SCORES),
        tuple(plugins.find_weight(name, score.weight) for name, score in DOMAIN_SCORES),
    )


def read_needs(pod: Whereabouts, plugins: KubePlugins) -> Needs:
    """Read from a pod what each static filter evaluates: equal for pods for which the filter refuses the same nodes."""
    not_asked = plugins.not_asked
    return tuple(
        [
            None
            if name in not_asked
            else rule.needs(pod)
            if rule.of_profile is None
            else rule.of_profile(plugins)
            for name, rule, _ in _FILTERS
        ]
    )


def read_wants(template: PodTemplate, plugins: KubePlugins) -> Needs:
    """Read from a template what each static score evaluates: equal for pods to which the score gives the same points."""
    return tuple(
        _read_want(score, template, plugins) if weight else None
        for (_, score), weight in zip(SCORES, get_weights(plugins).of_nodes, strict=True)
    )


def _read_want(score: Score, template: PodTemplate, plugins: KubePlugins) -> Hashable | None:
    want = score.wants(template)
    if score.adds is None:
        return want
    added = score.adds(plugins)
    return None if want is None and added is None else (want, added)


def find_refusals(needs: Needs, nodes: NodeTable, rows: c.Ints) -> c.Ints:
    """Find the refusal bits [n] of static filters for n rows."""
    bits = np.zeros(rows.size, np.int64)
    for (_, rule, bit), need in zip(_FILTERS, needs, strict=True):
        if need is not None:
            bits[rule.refuses(need, nodes, rows)] |= bit
    return bits


def find_objection(asked: Asked, nodes: NodeTable, row: int) -> str:
    """Find the reason why a node's object alone keeps a pod off the node now; empty if it does not."""
    needed = read_needs(asked.template, asked.placement.kube)
    bits = find_refusals(needed, nodes, np.array([row], np.int64))
    return REASONS[int(find_first_bits(bits)[0])][1].text if bits[0] else ""


def could_host(pod: Whereabouts, nodes: NodeTable, rows: c.Ints) -> c.Flags:
    """Whether pods could go to each of n rows by what the node is, whatever states come and go."""
    flags = np.ones(rows.size, np.bool_)
    plugins = kube_plugins.DEFAULT
    for rule in _LASTING:
        need = rule.needs(pod) if rule.of_profile is None else rule.of_profile(plugins)
        if need is not None:
            flags &= ~rule.refuses(need, nodes, rows)
    return flags


def list_totals(asked: Asked) -> list[str]:
    """List the sums over pods that kernels read for a shape and that no node offers."""
    return [total for row in ROWS if row.totals is not None for total in row.totals(asked)]


def is_learning(ask: c.Ask) -> bool:
    """Whether the score of a compiled request depends on the demand that was learnt."""
    return any(row.is_learning is not None and row.is_learning(ask) for row in ROWS)


def draws_lots(asked: Asked) -> bool:
    """Whether nodes get new lots for every decision."""
    return any(row.draws_lots is not None and row.draws_lots(asked) for row in ROWS)


def list_points(asked: Asked, ask: c.Ask, nodes: c.Nodes, board: c.Board, row: int) -> list[Points]:
    """List the points of a row by what is charged to it, on an up-to-date board."""
    return [
        one
        for rule in ROWS
        if rule.points is not None
        for one in rule.points(asked, ask, nodes, board, row)
    ]


def has_peers(template: PodTemplate, cluster: Cluster) -> bool:
    """Whether any rule about other pods may concern pods of a template."""
    return any(domain.concerns(template, cluster) for _, domain in _DOMAINS)


def read_peer_needs(pod: Standing, cluster: Cluster) -> Needs:
    """Read from a pod what each rule about other pods evaluates: equal for pods that these rules treat alike."""
    return tuple(domain.needs(pod, cluster) for _, domain in _DOMAINS)


def is_wide(needs: Needs) -> bool:
    """Whether a change on one node can help a pod with these needs on another node."""
    return any(
        need is not None and domain.is_wide(need)
        for (_, domain), need in zip(_DOMAINS, needs, strict=True)
    )


def list_tallies(needs: Needs, cluster: Cluster) -> Tallied:
    """List the counts of pods in domains of nodes that rules use for pods with these needs."""
    if needs == NO_NEEDS:
        return NOTHING_TALLIED
    found: list[tuple[list[int], Tally]] = []
    scores: list[int] = []
    for (rule, domain), need in zip(_DOMAINS, needs, strict=True):
        tallies = domain.tallies(need, cluster) if need is not None else ()
        for one in tallies:
            score = -1
            if one.kind in {of_domains.SPREAD, of_domains.SUM, of_domains.POINTS}:
                if _SCORE_OF[rule.name] not in scores:
                    scores.append(_SCORE_OF[rule.name])
                score = scores.index(_SCORE_OF[rule.name])
            found.append((_make_figures(one, FIRST_BIT[rule], score), one))
    return Tallied(tuple(found), tuple(scores))


def _make_figures(tally: Tally, first_bit: int, score: int) -> list[int]:
    figures = [0] * of_domains.N_TALLY
    figures[of_domains.TALLY_KIND], figures[of_domains.TALLY_GAIN] = tally.kind, tally.gain
    figures[of_domains.TALLY_BIT] = first_bit + tally.reason
    figures[of_domains.TALLY_NO_LABEL] = first_bit + tally.no_label
    figures[of_domains.TALLY_KEY] = figures[of_domains.TALLY_MASK] = figures[
        of_domains.TALLY_EMPTY
    ] = -1
    figures[of_domains.TALLY_SCORE] = score
    for figure, value in tally.figures.items():
        figures[figure] = value
    return figures


def count_words(template: PodTemplate) -> int:
    """Count the words that the refusal bits of a pod take: each reason and each requested resource has a bit."""
    return -(-(len(REASONS) + 1 + len(template.requests.amounts)) // c.WORD)


def find_first_bits(bits: c.Ints) -> c.Ints:
    """Find the number [n] of the lowest refusal bit of each row, the reason that holds; -1 for none."""
    lowest = bits & -bits
    # The logarithm is exact, because a float holds a power of two exactly.
    numbers: c.Ints = np.where(lowest > 0, np.log2(np.maximum(lowest, 1)).astype(np.int64), -1)
    return numbers


def tell_reasons(judged: Judged) -> list[tuple[c.Ints, RowReasons]]:
    """List for each rule the positions of the rows that it refuses first, and its reasons for them."""
    return [(at, _tell_rule(rule, part)) for rule, at, part in _split_by_rule(judged)]


def tell_all_reasons(judged: Judged) -> list[tuple[str, c.Ints, RowReasons]]:
    """List the reasons of every rule that refuses a row, not only of the first: rule name, positions and reasons."""
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
            found.append((rule.name, at, _tell_rule(rule, part)))
    return found


def sum_up_reasons(judged: Judged) -> list[tuple[Rule, Summary]]:
    """Sum up why the rows are refused, in one summary for each rule. Rows come by rank."""
    return [
        (rule, rule.sum_up(part) if rule.sum_up else count_texts(_tell_rule(rule, part)))
        for rule, _, part in _split_by_rule(judged)
    ]


def find_lasting(judged: Judged) -> c.Flags:
    """Find the rows [n] where no eviction would help: ``RowReasons.unresolvable`` of all rules, found in less time."""
    flags = np.zeros(judged.rows.size, np.bool_)
    for rule, at, part in _split_by_rule(judged):
        flags[at] = rule.lasting(part) if rule.lasting else _tell_rule(rule, part).unresolvable
    return flags


def list_texts() -> list[str]:
    """List the texts of all reasons, with ``{}`` for a name that a rule inserts."""
    found = [text for rule in RULES for text in rule.texts or _list_fixed_texts(rule)]
    return list(dict.fromkeys(found))


def _list_fixed_texts(rule: Rule) -> tuple[str, ...]:
    return tuple(reason.text for reason in rule.reasons)


def _split_by_rule(judged: Judged) -> Iterator[tuple[Rule, c.Ints, Judged]]:
    """Split the rows by the first rule that refuses them: the rule, the positions of its rows, and these rows alone."""
    firsts = find_first_bits(judged.bits[0])
    for rule in RULES:
        if not rule.reasons:
            continue
        first = FIRST_BIT[rule]
        at = np.flatnonzero((firsts >= first) & (firsts < first + len(rule.reasons)))
        if at.size:
            of_rule = judged._replace(rows=judged.rows[at], bits=judged.bits[:, at], first=first)
            yield rule, at, of_rule


def _tell_rule(rule: Rule, part: Judged) -> RowReasons:
    if rule.tell:
        return rule.tell(part)
    numbers = FIRST_BIT[rule] + np.arange(len(rule.reasons))
    return make_fixed_reasons(rule.reasons, find_first_bits(part.bits[0])[:, None] == numbers)
