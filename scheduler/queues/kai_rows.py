"""One of KAI's queues in full, and what is in it, as JSON."""

from __future__ import annotations

from typing import Any

from scheduler.engine.questions.kai_queues import InKaiQueue
from scheduler.engine.questions.queues import KaiFigures
from scheduler.queues.scene import Scene
from scheduler.simulate.kai_rows import write_amounts, write_queue

Json = dict[str, Any]


def show(scene: Scene, one: KaiFigures, most: int) -> Json:
    """Show one queue in full; of those who wait at most so many, 0 for all."""
    inside = [other for other in scene.kai.entities if other.queue == one.defined.name]
    waiters = [other for other in inside if other.is_waiting]
    shown = waiters[: most or None]
    path = list_path(scene, one)
    return {
        "kaiQueue": write_queue(one, len(path)),
        "path": path,
        "children": list(one.children),
        "holders": [_write_entity(other) for other in inside if not other.is_waiting],
        "waiters": [
            _write_entity(other)
            | {"position": other.position, "reason": other.reason, "message": other.message}
            for other in shown
        ],
        "notShown": len(waiters) - len(shown),
    }


def list_path(scene: Scene, one: KaiFigures) -> list[str]:
    """List the queues above a queue, the nearest first."""
    path: list[str] = []
    above = scene.kai.queues.get(one.defined.parent)
    while above is not None and above.defined.name not in path:
        path.append(above.defined.name)
        above = scene.kai.queues.get(above.defined.parent)
    return path


def _write_entity(one: InKaiQueue) -> Json:
    return {
        "namespace": one.namespace,
        "name": one.name,
        "kind": one.kind,
        "priority": one.priority,
        "preemptible": one.is_preemptible,
        "pods": one.n_pods,
        "amounts": write_amounts(one.amounts),
    }
