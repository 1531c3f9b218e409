"""Finds the taint or label that keeps typical pods off a node, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.api.pods.tolerations import is_hard, tolerates
from scheduler.engine.engine import Engine
from scheduler.engine.questions.auditing import WrongLabels
from scheduler.engine.questions.nodes import KnownNode
from scheduler.measure.figures import Figures
from scheduler.measure.typical import Typical
from scheduler.state.demand import DemandShape
from scheduler.state.nodes import NodeFacts, TaintKey


def find_barriers(engine: Engine, typical: Typical, figures: Figures) -> dict[str, str]:
    """Find, by node, what keeps off all typical pods with GPUs that have room there; nodes open to one are left out."""
    found = {}
    shapes = [pod.shape for pod in typical.pods]
    with_gpus = np.array([shape.cards > 0 for shape in shapes], np.bool_)
    closed_to = figures.barred[with_gpus].any(axis=0) & (figures.hosted[0] == 0)
    for i in np.flatnonzero(closed_to).tolist():
        name = figures.names[i]
        facts = engine.ask(KnownNode(name))
        if facts is None:
            continue
        barred = [shapes[k] for k in np.flatnonzero(figures.barred[:, i] & with_gpus).tolist()]
        found[name] = _say_barrier(engine, barred, facts)
    return found


def list_shut(engine: Engine, typical: Typical, names: Sequence[str]) -> frozenset[str]:
    """List the nodes with taints or labels that keep off all typical pods with GPUs, whatever room there is."""
    shapes = [pod.shape for pod in typical.pods if pod.shape.cards > 0]
    return frozenset(name for name in names if shapes and not _is_open(engine, name, shapes))


def _is_open(engine: Engine, name: str, shapes: Sequence[DemandShape]) -> bool:
    hard = list_hard_taints(engine, name)
    tolerant = [
        shape for shape in shapes if all(tolerates(shape.tolerations, taint) for taint in hard)
    ]
    if any(not (shape.selector or shape.required) for shape in tolerant):
        return True
    return not all(engine.ask(WrongLabels(name, tolerant)))


def list_hard_taints(engine: Engine, name: str) -> list[TaintKey]:
    """List the taints of a node that keep off pods without a toleration."""
    facts = engine.ask(KnownNode(name))
    return [] if facts is None else [taint for taint in facts.taints if is_hard(taint)]


def _say_barrier(engine: Engine, shapes: Sequence[DemandShape], facts: NodeFacts) -> str:
    kept = [taint for taint in facts.taints if _is_barrier(taint, shapes)]
    if kept:
        noun = "taint" if len(kept) == 1 else "taints"
        listed = " and ".join(map(name_taint, kept))
        return f"the typical GPU pods do not tolerate the {noun} {listed}"
    if not all(engine.ask(WrongLabels(facts.name, shapes))):
        return "the typical GPU pods do not tolerate its taints, or their node selectors do not match its labels"
    lacking = [
        f"{key}={value}"
        for key, value in shapes[0].selector
        if facts.labels.get(key) != value
        and all((key, value) in shape.selector for shape in shapes)
    ]
    if not lacking:
        return "the node selectors and affinities of the typical GPU pods do not match its labels"
    noun = "label" if len(lacking) == 1 else "labels"
    return f"the typical GPU pods select nodes with the {noun} {' and '.join(lacking)}"


def _is_barrier(taint: TaintKey, shapes: Sequence[DemandShape]) -> bool:
    """Whether a taint keeps off the pods of all these shapes."""
    return is_hard(taint) and not any(tolerates(shape.tolerations, taint) for shape in shapes)


def name_taint(taint: TaintKey) -> str:
    """Name a taint as kubectl does."""
    key, value, effect = taint
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"
