"""``evenkeel queue`` without its flags: reads the objects, queries the engine, and returns the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TextIO

from scheduler.config import Config
from scheduler.errors import BadInput
from scheduler.progress import Tell
from scheduler.queues import kai_rows, kai_whys, rows, whys
from scheduler.queues.scene import Scene
from scheduler.simulate.gathered import list_complaints, prepare_gathered
from scheduler.simulate.kai_rows import list_queues
from scheduler.simulate.reading.gathering import Live, gather_objects

Json = dict[str, Any]
What = Literal["list", "tree", "show", "why"]
_NAMED = {
    "show": "the name of a queue or a cohort",
    "why": "NAMESPACE/NAME of a Workload, or of a pod or PodGroup in a queue of KAI's",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The arguments of ``evenkeel queue`` as they were typed, except for the cluster's.

    Attributes:
        decide: first give quota to all who can have it.
        most: how many of those who wait are shown; 0 for all.
    """

    config: Config
    what: What
    name: str | None = None
    files: Sequence[str] = ()
    baseline: Sequence[str] = ()
    decide: bool = False
    most: int = 20


@dataclass(frozen=True, slots=True)
class QueueAnswer:
    """What is printed, mistakes in objects for standard error, and the exit code."""

    printed: Json
    complaints: list[str]
    code: int


def check_request(request: Request) -> None:
    """Refuse arguments that are known to be wrong before anything is read.

    Raises:
        BadInput: a name is missing, or there is one too many.
    """
    if request.what in _NAMED and not request.name:
        raise BadInput(f"queue {request.what}", f"needs {_NAMED[request.what]}")
    if request.what not in _NAMED and request.name:
        raise BadInput(f"queue {request.what}", f"takes no name; for one queue: `evenkeel queue show {request.name}`")  # fmt: skip
    if request.most < 0:
        raise BadInput("--most", "must be at least 0")


def answer(request: Request, live: Live | None, stdin: TextIO, tell: Tell) -> QueueAnswer:
    """Read the objects, and find what is asked for.

    Raises:
        BadInput: an argument or a file is wrong, or there is no such queue or workload; the error names what there is.
    """
    command = " ".join(filter(None, ("queue", request.what, request.name)))
    gathered = gather_objects(
        request.files, live or Live(), stdin, tell, baseline=request.baseline, command=command
    )
    tell("filling the engine")
    situation = prepare_gathered(gathered, live.unlisted if live else None)
    scene = Scene(situation, request.config, is_live=live is not None)
    if request.decide:
        tell("giving quota")
        scene.decide()
    tell("looking at queues")
    printed = _find(request, scene)
    complaints = list_complaints(gathered, situation)
    return QueueAnswer({"what": request.what, **printed}, complaints.texts, complaints.code)


def _find(request: Request, scene: Scene) -> Json:
    match request.what:
        case "list":
            return {"queues": rows.list_queues(scene), **_find_others(scene)}
        case "tree":
            return {"queues": rows.list_tree(scene), **_find_others(scene)}
        case "show":
            return _show(scene, request.name or "", request.most)
        case "why":
            return _explain(scene, request.name or "")


def _show(scene: Scene, name: str, most: int) -> Json:
    is_taken = any(one.name == name for one in scene.queues)
    of_kai = scene.kai.find_queue(name, is_taken=is_taken)
    if of_kai is not None:
        return kai_rows.show(scene, of_kai, most)
    return rows.show(scene, scene.find_queue(name), most)


def _explain(scene: Scene, name: str) -> Json:
    of_kai = None if name in scene.workloads else scene.kai.find_entity(name)
    if of_kai is not None:
        return kai_whys.explain(scene, of_kai)
    return whys.explain(scene, scene.find_workload(name))


def _find_others(scene: Scene) -> Json:
    return {
        "lost": rows.list_lost(scene),
        "astray": rows.list_astray(scene),
        "kaiQueues": list_queues(scene.kai.queues),
    }
