"""``evenkeel explain`` without its flags: reads the objects, queries the engine, and returns the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from scheduler.config import Config
from scheduler.engine.questions.explaining import ExplainNode
from scheduler.errors import BadInput
from scheduler.explain import asked, finding, groups, near, pods, quota
from scheduler.explain.scene import Scene
from scheduler.progress import Tell
from scheduler.simulate import gaps
from scheduler.simulate.gathered import list_complaints, prepare_gathered
from scheduler.simulate.reading.gathering import Live, gather_objects
from scheduler.simulate.reading.kinds import ObjectKey

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The arguments of ``evenkeel explain`` as they were typed, except for the cluster's."""

    config: Config
    what: str
    name: str | None = None
    namespace: str | None = None
    files: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ExplainAnswer:
    """What is printed, mistakes in objects for standard error, and the exit code."""

    printed: Json
    complaints: list[str]
    code: int


def check_request(request: Request) -> None:
    """Refuse arguments that are known to be wrong before anything is read.

    Raises:
        BadInput: the words name no object; the error says what is allowed.
    """
    asked.read_key(request.what, request.name, request.namespace)


def explain(request: Request, live: Live | None, stdin: TextIO, tell: Tell) -> ExplainAnswer:
    """Read the objects, find the one that is asked about, and explain it.

    Raises:
        BadInput: an argument or a file is wrong, or there is no such object; the error names similar ones.
    """
    command = f"explain {request.what} {request.name}"
    gathered = gather_objects(request.files, live or Live(), stdin, tell, command=command)
    tell("filling the engine")
    situation = prepare_gathered(gathered, live.unlisted if live else None)
    scene = Scene(situation, request.config, is_live=live is not None)
    wanted = asked.read_key(request.what, request.name, request.namespace)
    tell(f"explaining {wanted.name}")
    explainers = {asked.NODE: _explain_node, asked.GROUP: groups.explain_group}
    printed = explainers.get(wanted.kind, _explain_pod)(wanted, scene)
    complaints = list_complaints(gathered, situation)
    return ExplainAnswer(printed, complaints.texts, complaints.code)


def _explain_pod(wanted: ObjectKey, scene: Scene) -> Json:
    found = (
        finding.find_pod(scene, wanted)
        if wanted.kind == asked.POD
        else finding.find_pod_of_workload(scene, wanted)
    )
    printed = pods.explain_pod(scene, found.pod)
    quota.add_hold(scene.engine, found.pod, printed)
    missing = gaps.report_missing_storage(scene.situation.inventory, [found.pod])
    printed["remarks"] = [*filter(None, (found.remark,)), *missing, *printed["remarks"]]
    return printed


def _explain_node(wanted: ObjectKey, scene: Scene) -> Json:
    name = wanted.name
    if (problem := scene.malformed.get(name)) is not None:
        raise BadInput(f"node {name}", f"cannot be read, and is left out: {problem}")
    if name not in scene.nodes:
        raise near.report_unknown(scene, wanted)
    return scene.engine.ask(ExplainNode(name, scene.schedulers))
