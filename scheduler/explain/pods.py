"""Explains why a pod waits, or why it went where it went, as plain values: the form of ``-o json``."""

from __future__ import annotations

from typing import Any

from scheduler.api import wire
from scheduler.engine.questions.explaining import ExplainPod, OutlookOf
from scheduler.explain.scene import Scene
from scheduler.telling.advice import wishes

Json = dict[str, Any]


def explain_pod(scene: Scene, pod: wire.Pod) -> Json:
    """Explain everything about one pod."""
    meta, node = pod.metadata, pod.spec.node_name or ""
    found: Json = {
        "kind": "Pod",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
        "scheduler": scene.schedulers[meta.uid],
        "priority": 0,
        "node": None,
        "state": "",
        "message": "",
        "remarks": _list_remarks(scene, pod),
    }
    coming = wishes.copy_pod(pod)
    coming.spec.node_name = None
    if coming.spec.scheduler_name not in scene.config.scheduler_names:
        coming.spec.scheduler_name = scene.config.scheduler_name
    found |= scene.engine.ask(ExplainPod(coming, node, scene.nodes, scene.come_again))
    outlook = scene.engine.ask(OutlookOf(meta.uid))
    found["group"] = None if outlook is None else outlook._asdict()
    if outlook is not None and not outlook.fits and found["state"] in {"fits", "preempts"}:
        # Alone it would fit, or make room, but it is placed with its group or not at all.
        found["state"] = "waits"
        found |= {"now": None, "preemption": None}
    return found


def _list_remarks(scene: Scene, words: wire.Pod) -> list[str]:
    found = []
    name = scene.schedulers[words.metadata.uid]
    mine = name in scene.config.scheduler_names
    node = words.spec.node_name
    if node:
        found.append(
            f"It is on {node}. Evaluated again against the cluster as it is now: when the pod was bound, "
            "nodes may have been in another state."
        )
        if node not in scene.nodes:
            found.append(f"Node {node} is not among the nodes.")
    if not mine and name:
        found.append(
            f'It names scheduler "{name}", which is not one of ours ({", ".join(scene.config.scheduler_names)}): '
            "evaluated as one of ours."
        )
    if words.metadata.deletion_timestamp is not None:
        found.append("It is being deleted.")
    if any(reason := _describe_earlier(words)):
        found.append(f"Its scheduler reported last: {reason}")
    return found


def _describe_earlier(words: wire.Pod) -> str:
    for one in words.status.conditions or ():
        if one.type == "PodScheduled" and one.status == "False":
            return one.message
    return ""
