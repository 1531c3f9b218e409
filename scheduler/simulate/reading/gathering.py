"""Objects from a cluster and from files put together, and where each is from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TextIO

from scheduler.errors import BadInput
from scheduler.progress import Tell
from scheduler.simulate.reading import files, inventory, kinds

CLUSTER = "the cluster"


@dataclass(frozen=True, slots=True)
class Live:
    """What a cluster has, and the kinds that it would not list, and why."""

    objects: Sequence[Mapping[str, Any]] = ()
    unlisted: Mapping[str, str] = field(default_factory=dict)


class Origin(NamedTuple):
    """The file of an object, and where it stands there if nothing else tells it from others: it has no name."""

    file: str
    place: str = ""

    def before(self, text: str) -> str:
        """The text, with where it is about in front."""
        return ": ".join(filter(None, (*self, text)))


@dataclass(frozen=True, slots=True)
class Gathered:
    """All objects, where each is from, and what else is to be known of that."""

    objects: list[Mapping[str, Any]] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def own(self) -> frozenset[str]:
        """The files that somebody asks about: those beside a cluster, or beside a dump of one.

        A dump holds nodes, or pods that have one. Without a cluster or a dump no file is beside anything.
        """
        files = {origin.file for origin in self.origins}
        if CLUSTER in files:
            return frozenset(files - {CLUSTER})
        pairs = zip(self.origins, self.objects, strict=True)
        dumps = {origin.file for origin, body in pairs if _is_of_a_cluster(body)}
        return frozenset(files - dumps) if dumps else frozenset()


def _is_of_a_cluster(body: Mapping[str, Any]) -> bool:
    kind, spec = kinds.known(body), body.get("spec")
    has_node = isinstance(spec, Mapping) and bool(spec.get("nodeName"))
    return kind == "Node" or (kind == "Pod" and has_node)


def gather(names: Iterable[str], live: Live, stdin: TextIO, tell: Tell) -> Gathered:
    """What the cluster has, where no file has an object of the same name, and then what the files have.

    Raises:
        BadInput: as ``files.placed``, or as ``refuse_illegible``.
    """
    given: list[tuple[Origin, Mapping[str, Any]]] = []
    for name in names:
        tell(f"reading {files.in_words(name)}")
        given += named(name, files.placed(name, stdin))
    if not live.objects:
        refuse_illegible((origin.file, body) for origin, body in given)
    gathered = Gathered()
    _put_beneath(gathered, live, [body for _, body in given])
    put(given, gathered.objects, gathered.origins)
    return gathered


def named(file: str, found: Iterable[files.Placed]) -> list[tuple[Origin, Mapping[str, Any]]]:
    """Objects of a file with where they are from."""
    return [(Origin(file, "" if kinds.key(body).name else place), body) for body, place in found]


def refuse_illegible(found: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """End where nothing at all can be read: there is nothing to answer about.

    Raises:
        BadInput: all objects are documents that cannot be read; tells the first.
    """
    given = list(found)
    bad = [(file, body.problem) for file, body in given if isinstance(body, kinds.Illegible)]
    if bad and len(bad) == len(given):
        raise BadInput(*bad[0])


def put(
    found: Iterable[tuple[Origin, Mapping[str, Any]]],
    objects: list[Mapping[str, Any]],
    origins: list[Origin],
) -> None:
    """Add objects to a list, and where they are from to another."""
    for origin, body in found:
        objects.append(body)
        origins.append(origin)


def _put_beneath(gathered: Gathered, live: Live, files_hold: list[Mapping[str, Any]]) -> None:
    """What the cluster has, where no file has an object of the same name."""
    own = {key for key in map(kinds.key, files_hold) if key.name}
    for body in live.objects:
        key = kinds.key(body)
        if key not in own:
            gathered.objects.append(body)
            gathered.origins.append(Origin(CLUSTER))
        elif key.kind in kinds.WORKLOADS:
            gathered.remarks.append(
                f"{inventory.name_of(body)} is in the cluster already: its pods there stay as they are, "
                "and only the missing pods are created from the file"
            )
