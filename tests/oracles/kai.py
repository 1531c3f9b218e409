"""KAI's choice of the domains that it tries for pods, once more and slowly, from domain to domain.

Source: kai-scheduler/KAI-Scheduler (Apache-2.0), pkg/scheduler/plugins/topology at 72de64fc. Written anew from its rules:

- A node that lacks the label of a level is in no domain.
- Pods that ask for the same kinds of resources are counted: each of them as if it asked for as much of everything as any
  of them. Of pods that ask for unlike kinds the sums are compared with what a domain has free.
- From the preferred level up to the required one, or up to the whole topology if none is required, each domain that has room is
  tried. Within a level the domains come in the order of the tree; of one parent's domains that one first which the pods fill
  most, by the resource of which they ask most.
- Nodes in the last of the domains of the preferred level are liked best.
"""

import math
from dataclasses import dataclass, field

Amounts = dict[str, int]
GPU, CPU = "gpu", "cpu"
# What every pod may ask for; pods that ask for unlike kinds of anything else are not counted one by one.
ALWAYS = {CPU, "memory"}


@dataclass
class Node:
    """A node: its values at the levels from the widest on, and what is free."""

    name: str
    values: tuple[str, ...]
    free: Amounts


@dataclass
class Domain:
    """A domain; the root has no values."""

    values: tuple[str, ...]
    nodes: list[Node] = field(default_factory=list)
    children: "list[Domain]" = field(default_factory=list)


def grow(nodes: list[Node], n_levels: int, values: tuple[str, ...] = ()) -> Domain:
    inside = [one for one in nodes if len(one.values) == n_levels and one.values[: len(values)] == values]  # fmt: skip
    domain = Domain(values, inside)
    if len(values) < n_levels:
        for value in sorted({one.values[len(values)] for one in inside}):
            domain.children.append(grow(nodes, n_levels, (*values, value)))
    return domain


def count_on(node: Node, pods: list[Amounts]) -> int:
    """Count the pods that fit on a node, each as large as the largest in everything."""
    largest = {name: max(pod.get(name, 0) for pod in pods) for pod in pods for name in pod}
    asked = {name: amount for name, amount in largest.items() if amount}
    if not asked:
        return len(pods)
    return min(max(0, node.free.get(name, 0)) // amount for name, amount in asked.items())


def find_ratio(domain: Domain, pods: list[Amounts]) -> float:
    """Find how much of what is free in a domain the pods ask for, of the resource of which they ask most of it."""
    ratio = 0.0
    for name in {name for pod in pods for name in pod}:
        asked = sum(pod.get(name, 0) for pod in pods)
        free = sum(node.free.get(name, 0) for node in domain.nodes)
        if not asked:
            continue
        if name == GPU:
            ratio = max(ratio, asked / free if free else math.inf)
            continue
        unit = 1000 if name == CPU else 1
        wanted, there = math.ceil(asked / unit), math.ceil(free / unit)
        ratio = max(ratio, wanted / there if there else 1000.0)
    return ratio


def fits(domain: Domain, pods: list[Amounts]) -> bool:
    kinds = {frozenset(name for name, amount in pod.items() if amount) - ALWAYS for pod in pods}
    if len(kinds) == 1:
        return sum(count_on(node, pods) for node in domain.nodes) >= len(pods)
    return find_ratio(domain, pods) <= 1


def list_by_level(root: Domain, pods: list[Amounts]) -> list[list[Domain]]:
    """List the domains of each level in the order of the tree, the root being the first level."""
    levels = [[root]]
    while levels[-1]:
        below: list[Domain] = []
        for parent in levels[-1]:
            below += sorted(parent.children, key=lambda one: (-find_ratio(one, pods), one.values))
        levels.append(below)
    return levels[:-1]


def choose(
    nodes: list[Node],
    n_levels: int,
    pods: list[Amounts],
    *,
    required: int = -1,
    preferred: int = -1,
    there: tuple[tuple[str, ...], ...] = (),
) -> tuple[list[tuple[str, ...]], dict[str, int]]:
    """Choose the domains to try, by their values, and score each node if a level is preferred.

    ``there`` are the domains of the required level in which pods of the group run.
    """
    levels = list_by_level(grow(nodes, n_levels), pods)
    levels += [[] for _ in range(n_levels + 1 - len(levels))]
    tried: list[tuple[str, ...]] = []
    for level in range(max(required, preferred), required - 1 if required >= 0 else -2, -1):
        for domain in levels[level + 1]:
            is_apart = there and required >= 0 and domain.values[: required + 1] not in there
            if fits(domain, pods) and not is_apart:
                tried.append(domain.values)
    scores: dict[str, int] = {}
    if preferred >= 0:
        line = levels[preferred + 1]
        for i, domain in enumerate(line):
            for node in domain.nodes:
                scores[node.name] = math.floor((i + 1) / len(line) * 10)
    return tried, scores
