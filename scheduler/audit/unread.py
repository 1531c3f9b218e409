"""Objects with mistakes: some are left out of the audit, and pods on nodes stay there."""

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
        object: ``Kind namespace/name``, after the name of its file, if it is from a file.
        mistake: what a person must mend.
        effect: ``LEFT_OUT``, or ``STAYS``: a pod on a node holds what can be read of its requests.
    """

    object: str
    mistake: Mistake
    effect: str = LEFT_OUT

    def make_json(self) -> Json:
        """Make plain values of it."""
        field, problem = self.mistake
        return {
            "object": self.object, "field": field, "problem": problem, "effect": self.effect
        }  # fmt: skip


def leave_out(engine: Engine) -> list[Unread]:
    """List the objects with mistakes that an engine has seen, and remove the pods among them that wait for a node.

    Nodes come first; nodes and pods are in the order in which they were seen.
    """
    nodes = engine.ask(KnownNodes()).values()
    found = [Unread(f"Node {one.name}", one.problem) for one in nodes if one.problem]
    for pod in engine.ask(KnownPods()).values():
        problem = pod.template.problem
        if problem is None:
            continue
        found.append(Unread(f"Pod {pod.key}", problem, _find_effect(pod)))
        if not pod.node:
            engine.handle(events.Gone(kinds.PODS.name, pod.uid), 0.0)
    return found


def _find_effect(pod: PodRecord) -> str:
    return STAYS if pod.node else LEFT_OUT
