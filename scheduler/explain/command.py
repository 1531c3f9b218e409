"""``evenkeel explain`` without its flags: reads the objects, queries the engine, and returns the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from scheduler.config import Config
from scheduler.errors import BadInput, visible
from scheduler.explain import finding, nodes, pods
from scheduler.explain.scene import Scene
from scheduler.progress import Tell
from scheduler.simulate import gaps
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.reading.gathering import CLUSTER, Live, gather
from scheduler.simulate.situation import prepare

Json = dict[str, Any]
OK, MISTAKES = 0, 3
_TOLD_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The arguments of ``evenkeel explain`` as they were typed, except for the cluster's.

    Attributes:
        what: a word of ``finding.PODS``, ``NODES`` or ``WORKLOADS``.
    """

    config: Config
    what: str
    name: str
    files: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What is printed, mistakes in objects for standard error, and how the command ends."""

    printed: Json
    complaints: list[str]
    code: int


def check(request: Request) -> None:
    """Before anything is read, whatever can be known to be wrong.

    Raises:
        BadInput: the name is none; says what is allowed.
    """
    words = (*finding.PODS, *finding.NODES, *finding.WORKLOADS)
    if request.what not in words:
        known = ", ".join(words)
        raise BadInput("WHAT", f'"{request.what}" cannot be explained; allowed are {known}')
    parts = request.name.split("/")
    if request.what not in finding.NODES and (len(parts) > 2 or not all(parts)):
        raise BadInput(
            "NAME",
            f'"{request.name}" is not a name: write NAMESPACE/NAME, or NAME in default',
        )
    if request.what in finding.NODES and (len(parts) > 1 or not request.name):
        raise BadInput(
            "NAME", f'"{request.name}" is not a node name: write NAME without a namespace'
        )


def answer(request: Request, live: Live | None, stdin: TextIO, tell: Tell) -> Answer:
    """Read, find what is asked about, and explain it.

    Raises:
        BadInput: an argument or a file is wrong, or there is no such pod or node; names some that are near.
    """
    command = f"explain {request.what} {request.name}"
    gathered = gather(request.files, live or Live(), stdin, tell, command=command)
    tell("filling the engine")
    situation = prepare(
        gathered.objects,
        Changes(),
        strict=False,
        unlisted=live.unlisted if live else None,
        remarks=gathered.remarks,
    )
    scene = Scene(situation, request.config, is_live=live is not None)
    tell(f"explaining {request.name}")
    printed = _node(request, scene) if request.what in finding.NODES else _pod(request, scene)
    problems = list(situation.inventory.mistakes.values())
    said = [visible(gathered.origins[one.position].before(str(one))) for one in problems]
    more = len(said) - _TOLD_MAX
    complaints = [*said[:_TOLD_MAX], *([f"and {more} more"] if more > 0 else [])]
    complaints += [f"warning: {text}" for text in gaps.unlisted_kinds(situation.unlisted or {})]
    mine = any(gathered.origins[one.position].file != CLUSTER for one in problems)
    return Answer(printed, complaints, MISTAKES if mine else OK)


def _pod(request: Request, scene: Scene) -> Json:
    if request.what in finding.WORKLOADS:
        found = finding.pod_of(scene, request.what, request.name)
    else:
        found = finding.pod(scene, request.name)
    printed = pods.explained(scene, found.pod)
    missing = gaps.missing_classes(scene.situation.inventory, [found.pod])
    printed["remarks"] = [*filter(None, (found.remark,)), *missing, *printed["remarks"]]
    return printed


def _node(request: Request, scene: Scene) -> Json:
    if (problem := scene.malformed.get(request.name)) is not None:
        raise BadInput(f"node {request.name}", f"cannot be read, and is left out: {problem}")
    if request.name not in scene.nodes:
        start = [name for name in scene.nodes if name.startswith(request.name)]
        also = [f"pod {key}" for key in scene.pods if key.partition("/")[2] == request.name]
        raise finding.unknown(f"node {request.name}", "nodes", scene.nodes, first=start, also=also)
    return nodes.explained(scene, request.name)
