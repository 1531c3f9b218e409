"""Explains why a group waits, or where its pods are, as plain values: the form of ``-o json``."""

from __future__ import annotations

from typing import Any

from scheduler.engine.questions.explaining import ExplainGroup
from scheduler.engine.questions.waiting import AllGroups
from scheduler.explain import near
from scheduler.explain.scene import Scene
from scheduler.simulate.reading.kinds import ObjectKey

Json = dict[str, Any]


def explain_group(wanted: ObjectKey, scene: Scene) -> Json:
    """Explain a group, or the one that it is a part of.

    Raises:
        BadInput: there is none of this name; the error names similar ones.
    """
    roots = scene.engine.ask(AllGroups())
    found = [key for key in sorted(roots) if key[1:] == (wanted.namespace, wanted.name)]
    if not found:
        raise near.report_unknown(scene, wanted)
    first, *others = found
    root = roots[first]
    printed = scene.engine.ask(ExplainGroup(root, scene.nodes))
    remarks = [f"{first} is placed together with other groups, as a part of {root}."] * (
        first != root
    )
    kinds = ", ".join(key.kind for key in others)
    remarks += [f"It is a {first.kind}. Groups of other kinds have this name, too: {kinds}."] * (
        bool(others)
    )
    return printed | {"remarks": remarks}
