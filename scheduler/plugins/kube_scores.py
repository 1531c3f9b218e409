"""Scores of NodeResourcesFit and NodeResourcesBalancedAllocation: the input of their kernel, and their points."""

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
    """Compile the figures that the kernel reads for a pod."""
    plugins, requests = asked.placement.kube, asked.template.requests
    amounts = dict(requests.amounts)
    # The score does not count for pods that request none of these resources: all of them would prefer the same nodes.
    steps_aside = not any(name in amounts for name in plugins.balanced)
    balanced = [
        (nodes.find_row_asked(name), amounts.get(name, 0))
        for name in plugins.balanced
        if not steps_aside and (name in _ALWAYS or name in amounts)
    ]
    return c.KubeTerm(
        fit=_compile_fit(plugins, requests.of_containers or requests, nodes),
        balanced=np.array(balanced, np.int64).reshape(-1, 2),
        figures=shared.make_ints(_STRATEGIES[plugins.fit.strategy], *_read_weights(plugins)),
    )


def _compile_fit(plugins: KubePlugins, requests: Requests, nodes: NodeTable) -> c.Ints:
    """Compile [resources, N_FIT] from what the containers of the new pod request.

    This score of kube-scheduler 1.37.1 ignores the pod-level resources of the new pod, but counts those of pods on
    nodes (noderesources/fit.go makes its scorer without the gate).
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


def list_points(asked: Asked, nodes: c.Nodes, ask: c.Ask, row: int) -> tuple[Points, ...]:
    """List the points of a row by the scores with a weight."""
    of_fit, of_balanced = _read_weights(asked.placement.kube)
    found = []
    if of_fit:
        raw = int(kube.score_fit(nodes, ask, row))
        found.append(Points(FIT, raw, raw, of_fit))
    if of_balanced:
        raw = int(kube.score_balance(nodes, ask, row))
        found.append(Points(BALANCED, raw, raw, of_balanced))
    return tuple(found)


def _read_weights(plugins: KubePlugins) -> tuple[int, int]:
    return plugins.find_weight(FIT, 1), plugins.find_weight(BALANCED, 1)
