"""Objects with mistakes: which are left out of the audit, and which pods stay on their nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

from scheduler.api import kinds
from scheduler.api.door import events
from scheduler.engine.engine import Engine
from scheduler.engine.questions.nodes import KnownNodes
from scheduler.engine.questions.pods import KnownPods
from scheduler.errors import Mistake
from scheduler.state.pods import PodRecord

Json = dict[str, Any]
LEFT_OUT = "left out"
STAYS = "stays"


class Unread(NamedTuple):
    """An object with a mistake.

    Attributes:
        object: ``Kind namespace/name``, with the file that it is from before it, if it is from one.
        mistake: what a person must mend.
        effect: ``LEFT_OUT``, or ``STAYS``: a pod on a node holds there what can be read of it.
    """

    object: str
    mistake: Mistake
    effect: str = LEFT_OUT

    def as_json(self) -> Json:
        """The same as plain values."""
        field, problem = self.mistake
        return {
            "object": self.object, "field": field, "problem": problem, "effect": self.effect
        }  # fmt: skip


def leave_out(engine: Engine) -> list[Unread]:
    """What cannot be read of what an engine has seen; pods among it that wait for a node are taken from it.

    Nodes come first, each kind in the order seen.
    """
    nodes = engine.ask(KnownNodes()).values()
    found = [Unread(f"Node {one.name}", one.problem) for one in nodes if one.problem]
    for pod in engine.ask(KnownPods()).values():
        problem = pod.template.problem
        if problem is None:
            continue
        found.append(Unread(f"Pod {pod.key}", problem, _effect(pod)))
        if not pod.node:
            engine.handle(events.Gone(kinds.PODS.name, pod.uid), 0.0)
    return found


def _effect(pod: PodRecord) -> str:
    return STAYS if pod.node else LEFT_OUT
