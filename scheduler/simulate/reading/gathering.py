"""Gathers objects from a cluster and from files, and decides which are the baseline and which are one's own.

The baseline is the cluster as it is: a cluster that is read, or the files of ``--baseline``. Files of ``-f`` beside
a baseline are one's own. Without either, files that hold nodes or running pods are the baseline of the other files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TextIO

from scheduler.api.kinds import NODES, PODS
from scheduler.documents import foreign
from scheduler.errors import BadInput
from scheduler.progress import Tell
from scheduler.simulate.reading import files, kinds

CLUSTER = "the cluster"


@dataclass(frozen=True, slots=True)
class Live:
    """The objects of a cluster, and the kinds that it did not list, with the reasons."""

    objects: Sequence[Mapping[str, Any]] = ()
    unlisted: Mapping[str, str] = field(default_factory=dict)


class Origin(NamedTuple):
    """The file of an object, and its place in the file if the object has no name."""

    file: str
    place: str = ""

    def prefix(self, text: str) -> str:
        """Prefix a text with the file and the place."""
        return ": ".join(filter(None, (*self, text)))


@dataclass(frozen=True, slots=True)
class Gathered:
    """All objects, where each is from, and remarks about that.

    Attributes:
        baseline: the files whose objects are the cluster as it is; ``CLUSTER`` for the cluster itself.
        own: the files that are given beside the baseline; empty without a baseline.
        earlier: the workloads of one's own files, each with the object of the same name in the baseline; None without one.
        replaced: the queues of the baseline that files replace by others of the same name.
    """

    objects: list[Mapping[str, Any]] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    baseline: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    earlier: dict[kinds.ObjectKey, Mapping[str, Any] | None] = field(default_factory=dict)
    replaced: list[tuple[Origin, Mapping[str, Any]]] = field(default_factory=list)


_Given = list[tuple[Origin, Mapping[str, Any]]]


def gather_objects(
    names: Sequence[str],
    live: Live,
    stdin: TextIO,
    tell: Tell,
    *,
    baseline: Sequence[str] = (),
    command: str = "simulate",
) -> Gathered:
    """Gather the objects of the baseline that no file replaces by one of the same name, and then those of the files.

    Args:
        names: the files of ``-f``.
        live: the objects of a cluster.
        stdin: the content of a file with the name ``-``.
        tell: takes what is being read.
        baseline: files that replace a cluster.
        command: the command that reads the files, as it is typed.

    Raises:
        BadInput: as ``files.read_placed``, or as ``refuse_illegible``, or a file is given as both.
    """
    for name in baseline:
        if name in names:
            called = "standard input" if name == "-" else name
            raise BadInput("--baseline", f"{called} is also given with -f; give it once")
    beneath = [(Origin(CLUSTER), body) for body in live.objects]
    beneath += _read_baseline(baseline, stdin, tell, command)
    given = _read_files(names, stdin, tell, command)
    refuse_illegible((origin.file, body) for origin, body in [*beneath, *given])
    if live.objects or baseline:
        as_it_is, own = frozenset({CLUSTER, *baseline}), frozenset(names)
    else:
        as_it_is, own = _part_files(given)
        if own:
            beneath = [one for one in given if one[0].file in as_it_is]
            given = [one for one in given if one[0].file not in as_it_is]
    gathered = Gathered(baseline=as_it_is, own=own)
    if own:
        keys = map(kinds.read_key, (body for _, body in given))
        gathered.earlier.update(dict.fromkeys(key for key in keys if key.kind in kinds.WORKLOADS))
    _add_baseline(gathered, beneath, [body for _, body in given])
    add_objects(given, gathered.objects, gathered.origins)
    return gathered


def _read_files(
    names: Iterable[str], stdin: TextIO, tell: Tell, command: str, *, is_baseline: bool = False
) -> _Given:
    found: _Given = []
    for name in names:
        tell(f"reading {files.describe_file(name)}")
        where = f"--baseline {name}" if is_baseline else ""
        placed = files.read_placed(name, stdin, where, command, is_baseline=is_baseline)
        found += name_origins(name, placed)
    return found


def _read_baseline(names: Sequence[str], stdin: TextIO, tell: Tell, command: str) -> _Given:
    """Read the objects of ``--baseline``, which must hold a node: without one there is nothing to answer.

    Raises:
        BadInput: nothing in a file can be read, or no file holds a node.
    """
    found = _read_files(names, stdin, tell, command, is_baseline=True)
    for name in names:
        refuse_illegible(
            (f"--baseline {origin.file}", body) for origin, body in found if origin.file == name
        )
    if names and not any(kinds.find_kind(body) == NODES.name for _, body in found):
        raise BadInput(f"--baseline {', '.join(names)}", f"holds no node; {foreign.DUMP}")
    return found


def _part_files(given: _Given) -> tuple[frozenset[str], frozenset[str]]:
    """Part files: those that are a baseline because they hold nodes or running pods, and others with pods or workloads."""
    dumps = {origin.file for origin, body in given if _is_of_a_cluster(body)}
    own = {origin.file for origin, body in given if _may_have_pods(body)} - dumps
    return (frozenset(dumps), frozenset(own)) if dumps and own else (frozenset(), frozenset())


def _is_of_a_cluster(body: Mapping[str, Any]) -> bool:
    return kinds.find_kind(body) == NODES.name or is_running(body)


def is_running(body: Mapping[str, Any]) -> bool:
    """Whether an object is a pod that has a node."""
    spec = body.get("spec")
    has_node = isinstance(spec, Mapping) and bool(spec.get("nodeName"))
    return has_node and kinds.find_kind(body) == PODS.name


def _may_have_pods(body: Mapping[str, Any]) -> bool:
    kind = kinds.find_kind(body)
    return kind == PODS.name or kind in kinds.WORKLOADS or isinstance(body, kinds.Illegible)


def name_origins(
    file: str, found: Iterable[files.Placed]
) -> list[tuple[Origin, Mapping[str, Any]]]:
    """Name the origins of the objects of a file."""
    return [
        (Origin(file, "" if kinds.read_key(body).name else place), body) for body, place in found
    ]


def refuse_illegible(found: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Refuse files in which nothing at all can be read: there is nothing to answer.

    Raises:
        BadInput: all objects are documents that cannot be read; the error names the first.
    """
    given = list(found)
    bad = [(file, body.problem) for file, body in given if isinstance(body, kinds.Illegible)]
    if bad and len(bad) == len(given):
        raise BadInput(*bad[0])


def add_objects(
    found: Iterable[tuple[Origin, Mapping[str, Any]]],
    objects: list[Mapping[str, Any]],
    origins: list[Origin],
) -> None:
    """Add objects to one list, and their origins to another."""
    for origin, body in found:
        objects.append(body)
        origins.append(origin)


def _add_baseline(gathered: Gathered, beneath: _Given, files_hold: list[Mapping[str, Any]]) -> None:
    """Add the objects of the baseline that no file replaces by one of the same name."""
    own = {key for key in map(kinds.read_key, files_hold) if key.name}
    for origin, body in beneath:
        key = kinds.read_key(body)
        if key not in own:
            add_objects([(origin, body)], gathered.objects, gathered.origins)
        elif key in gathered.earlier:
            gathered.earlier[key] = body
        elif key.kind in kinds.QUEUES:
            gathered.replaced.append((origin, body))
