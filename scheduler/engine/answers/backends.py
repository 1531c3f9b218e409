"""The ways in which nodes share GPUs, for pods that request a share before anybody has decided which node they get.

The thread of the webhook asks while the main loop may replace columns by longer ones: only rows that all have are read.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from scheduler.api import plugin_parts, wire
from scheduler.api.admission.backends import ANY_SIZE, Backend
from scheduler.api.plugin_parts import Part
from scheduler.api.pods.tolerations import is_hard, tolerates
from scheduler.api.selectors import NodeTerm, meets_requirement, read_node_terms
from scheduler.engine.answers.inside import Inside
from scheduler.engine.questions import nodes as ask
from scheduler.measure.cards import list_run_rows
from scheduler.schema import columns as c
from scheduler.state.nodes import NodeFacts, NodeTable

# A tenant may write a pod with ten thousand words about nodes, and there may be as many nodes.
_WORDS_MAX = 200_000
# Kubernetes sets these taints for as long as a state lasts.
_STATES = "node.kubernetes.io/"


def list_backends(inside: Inside, question: ask.SharedGpus) -> tuple[Backend, ...]:
    """The ways in which nodes share GPUs, without the cards that another scheduler allocates."""
    cluster = inside.cluster
    pools, devices = cluster.nodes.columns.pools, cluster.registers.devices
    total, columns = cluster.cards.columns.total, (pools.family, pools.node, pools.count, pools.start)  # fmt: skip
    managed, part, found = pools.managed, pools.part, list[Backend]()
    n = min(part.shape[1], managed.size, *(column.size for column in columns))
    family, node, count, start = (column[:n] for column in columns)
    managed, part = managed[:n], part[:, :n]
    reach = _Reach(question.pod, cluster.nodes)
    wanted = devices.find_family(question.cards)
    foreign = cluster.nodes.foreign
    own = np.flatnonzero((family == wanted) & managed & (node >= 0) & (node < foreign.size))
    own = own[~foreign[node[own]]]
    most = _find_largest(total[c.MIB], start[own], count[own])
    largest_first = np.argsort(-most, kind="stable")
    at = reach.find_first(node[own[largest_first]].tolist())
    mib = int(most[largest_first[at]]) if at >= 0 else 0
    if wanted >= 0 and mib:
        found.append(Backend(ANY_SIZE, question.cards, 1.0, mib))
    is_part = (part[c.PART_WAY] > 0) & (part[c.PART_GPUS] > 0)
    counted = np.flatnonzero(~managed & (node >= 0) & is_part)
    sizes, kinds = np.unique(
        np.vstack((family[counted], part[:, counted])), axis=1, return_inverse=True
    )
    for kind in range(sizes.shape[1]):
        alike = counted[kinds.reshape(-1) == kind]
        at = reach.find_first(node[alike].tolist())
        if at < 0:
            continue
        facts = cluster.nodes.facts[int(node[alike[at]])]
        gpus, mib, way = part[:, alike[at]].tolist()
        resource = devices.families[int(family[alike[at]])]
        labels = facts.labels if facts else {}
        one = Part(gpus, int(mib), plugin_parts.WAYS[int(way)])
        marks = plugin_parts.list_marks(resource, labels)
        memory = plugin_parts.read_memory_part(resource, labels, one)
        found.append(Backend(one.way, resource, gpus, one.mib, marks, memory))
    return tuple(found)


def _find_largest(mib: c.Ints, start: c.Ints, count: c.Ints) -> c.Ints:
    """Find the MiB of the largest card of each pool; 0 for one without cards."""
    largest = np.zeros(start.size, np.int64)
    rows = list_run_rows(start, count)
    is_there = rows < mib.size
    np.maximum.at(largest, np.repeat(np.arange(start.size), count)[is_there], mib[rows[is_there]])
    return largest


class _Reach:
    """Which nodes a pod accepts by its node selector, its required node affinity and its tolerations.

    Taints that Kubernetes sets for as long as a state lasts do not count, and neither do those whose key is a resource of
    devices: the API server may let pods that request the resource tolerate them. No more than ``_WORDS_MAX`` words are compared:
    what is left then is taken for accepted, and the pod waits if it is not.
    """

    def __init__(self, pod: wire.Pod | None, nodes: NodeTable) -> None:
        """``pod``: None for one that accepts every node."""
        self._facts, self._is_family = nodes.facts, nodes.devices.is_family
        self._is_picky = pod is not None
        spec = wire.PodSpec() if pod is None else pod.spec
        affinity = spec.affinity and spec.affinity.node_affinity
        required = affinity and affinity.required_during_scheduling_ignored_during_execution
        self._selector = tuple((spec.node_selector or {}).items())
        self._terms = read_node_terms(required.node_selector_terms or ()) if required else None
        self._tolerations = tuple(
            (one.key, one.operator or "Equal", one.value, one.effect)
            for one in spec.tolerations or ()
        )
        said = sum(len(term.labels) + len(term.names) for term in self._terms or ())
        self._words = 1 + len(self._selector) + said + len(self._tolerations)
        self._left = _WORDS_MAX

    def find_first(self, nodes: Iterable[int]) -> int:
        """Find the place of the first node, by row, that the pod accepts; -1 for none."""
        return next((at for at, node in enumerate(nodes) if self._accepts(node)), -1)

    def _accepts(self, row: int) -> bool:
        facts = self._facts[row]
        if not self._is_picky or facts is None or self._left <= 0:
            return True
        self._left -= self._words
        if any(facts.labels.get(key) != text for key, text in self._selector):
            return False
        if any(
            is_hard(one)
            and not (one[0].startswith(_STATES) or self._is_family(one[0]))
            and not tolerates(self._tolerations, one)
            for one in facts.taints
        ):
            return False
        return self._terms is None or any(_meets_term(term, facts) for term in self._terms)


def _meets_term(term: NodeTerm, facts: NodeFacts) -> bool:
    names = {"metadata.name": facts.name}
    return all(meets_requirement(one, facts.labels) for one in term.labels) and all(
        one.holds(names) for one in term.names
    )
