"""Scores of NodeResourcesFit and NodeResourcesBalancedAllocation: their kernel's input, and how they are reported."""

from __future__ import annotations

import numpy as np

from scheduler.api import names
from scheduler.api.kube_plugins import BALANCED, FIT, KubePlugins, Strategy
from scheduler.api.pods.requests import Requests
from scheduler.kernels.modes import kube, score
from scheduler.plugins.contract import Asked, Points
from scheduler.schema import columns as c
from scheduler.schema import shared
from scheduler.state.nodes import NodeTable

_STRATEGIES = {
    Strategy.LEAST: score.LEAST,
    Strategy.MOST: score.MOST,
    Strategy.RATIO: score.RATIO,
}
# These count for every pod; other resources count only for pods that request them.
_ALWAYS = (names.CPU, names.MEMORY, names.EPHEMERAL)


def compile_term(asked: Asked, nodes: NodeTable) -> c.KubeTerm:
    """The figures that the kernel reads for a pod."""
    plugins, requests = asked.placement.kube, asked.template.requests
    amounts = dict(requests.amounts)
    # All pods that request none of these resources would prefer the same nodes.
    steps_aside = not any(name in amounts for name in plugins.balanced)
    balanced = [
        (nodes.find_row_asked(name), amounts.get(name, 0))
        for name in plugins.balanced
        if not steps_aside and (name in _ALWAYS or name in amounts)
    ]
    return c.KubeTerm(
        fit=_fit(plugins, requests.of_containers or requests, nodes),
        balanced=np.array(balanced, np.int64).reshape(-1, 2),
        figures=shared.ints(_STRATEGIES[plugins.fit.strategy], *_weights(plugins)),
    )


def _fit(plugins: KubePlugins, requests: Requests, nodes: NodeTable) -> c.Ints:
    """[resources, N_FIT] by what the containers of the new pod request.

    Of its pod-level resources this score of kube-scheduler 1.37.1 does not know, while those of pods that are on
    nodes count in it (noderesources/fit.go makes its scorer without the gate).
    """
    amounts = dict(requests.amounts)
    # Only these two have a default for containers that request none.
    nonzero = {names.CPU: (0, requests.nonzero_cpu), names.MEMORY: (1, requests.nonzero_memory)}
    found = [
        (
            nodes.find_row_asked(name),
            nonzero[name][1] if name in nonzero else amounts.get(name, 0),
            weight,
            nonzero[name][0] if name in nonzero else -1,
        )
        for name, weight in plugins.fit.resources
        if name in _ALWAYS or name in amounts
    ]
    return np.array(found, np.int64).reshape(-1, c.N_FIT)


def points(asked: Asked, nodes: c.Nodes, ask: c.Ask, row: int) -> tuple[Points, ...]:
    """The points of the scores that count, for a row."""
    of_fit, of_balanced = _weights(asked.placement.kube)
    found = []
    if of_fit:
        raw = int(kube.fit(nodes, ask, row))
        found.append(Points(FIT, raw, raw, of_fit))
    if of_balanced:
        raw = int(kube.balanced(nodes, ask, row))
        found.append(Points(BALANCED, raw, raw, of_balanced))
    return tuple(found)


def _weights(plugins: KubePlugins) -> tuple[int, int]:
    return plugins.weight(FIT, 1), plugins.weight(BALANCED, 1)
