"""NodeDeclaredFeatures: the node's kubelet declares all features that the pod requires."""

from __future__ import annotations

import numpy as np

from scheduler.api.pods.templates import Whereabouts
from scheduler.plugins.contract import Change, Filter, Held, Hint, Reason, Rule
from scheduler.schema.columns import Flags, Ints
from scheduler.state.nodes import NodeTable

Features = tuple[str, ...]


def _read_features(pod: Whereabouts) -> Features | None:
    return pod.features or None


def _find_refused(features: Features, nodes: NodeTable, rows: Ints) -> Flags:
    sets = nodes.feature_sets.values
    lacking = np.array([not set(features).issubset(declared) for declared in sets], np.bool_)
    flags: Flags = lacking[nodes.feature_set[rows]]
    return flags


def _make_hint(held: Held) -> Hint:
    return Hint(here=tuple((Change.NODE_FEATURES, one) for one in held.template.features))


RULE = Rule(
    name="NodeDeclaredFeatures",
    reasons=(Reason("node(s) didn't match Pod's required features", resolvable=False),),
    filter=Filter(needs=_read_features, refuses=_find_refused),
    hint=_make_hint,
)
