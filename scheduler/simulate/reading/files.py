"""Reads manifests from files: YAML or JSON, single objects, lists, several documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from scheduler.api.kinds import POLICIES
from scheduler.documents import foreign, mistakes, reading
from scheduler.documents.foreign import Source
from scheduler.errors import BadInput, explain_unreadable
from scheduler.simulate.reading.kinds import Illegible

_LIST = "is a list, not a Kubernetes object: put the list under `items:` of a `kind: List`"


class Placed(NamedTuple):
    """An object, and its place in its file, such as ``document 3, item 2``."""

    body: dict[str, Any]
    place: str


def describe_file(name: str) -> str:
    """Describe a file for a progress message: by its name, and its size if reading may take long."""
    if name == "-":
        return "standard input"
    try:
        size = Path(name).stat().st_size
    except OSError:
        return name
    return f"{name} ({size / 1e6:,.0f} MB)" if size >= 1e6 else name


def read_objects(name: str, stdin: TextIO) -> list[dict[str, Any]]:
    """Read all objects of a file, see ``read_placed``."""
    return [body for body, _ in read_placed(name, stdin)]


def read_placed(
    name: str,
    stdin: TextIO,
    where: str = "",
    command: str = "simulate",
    *,
    is_baseline: bool = False,
) -> list[Placed]:
    """Read all objects of a file, or of standard input if ``name`` is ``-``, with the place of each; unfold Lists.

    An object without a name can be named only by its place. A document that cannot be read, or that is no
    Kubernetes object but for example the values of a chart, is returned as ``Illegible``.

    Raises:
        BadInput: the file cannot be read; the error calls the file ``where`` if that is given, such as
            ``--add-node FILE``. Its advice depends on the ``command`` that reads the file, and on ``is_baseline``:
            whether the file is to be a dump of a cluster.
    """
    source = _make_source(name, command)._replace(is_baseline=is_baseline)
    documents = list(_split_documents(_read_text(name, stdin, where or name, source), source))
    if not documents:
        problem = "holds no Kubernetes object: it is empty, or has comments only"
        return [Placed(Illegible(f"{problem}; {foreign.DUMP}" if is_baseline else problem), "")]
    is_alone = len(documents) == 1
    return [
        one
        for place, document in documents
        for one in _unfold(document, place, "" if is_alone else place, source)
    ]


def read_policies(name: str, stdin: TextIO, where: str) -> list[Placed]:
    """Read the BalancePolicies of a file; a policy that is only a spec is named after the file.

    Raises:
        BadInput: as ``read_placed``.
    """
    found: list[Placed] = []
    source = _make_source(name, "simulate")
    for place, document in _split_documents(_read_text(name, stdin, where, source), source):
        is_spec = isinstance(document, dict) and not isinstance(document, Illegible)
        if is_spec and "kind" not in document and "schemaVersion" not in document:
            body = {"kind": POLICIES.name, "metadata": {"name": Path(name).stem}}
            found.append(Placed({**body, "spec": document}, place))
        else:
            found += _unfold(document, place, place, source)
    if not found:
        raise BadInput(where, "holds no BalancePolicy: it is empty, or has comments only")
    return found


def _make_source(name: str, command: str) -> Source:
    return Source(None if name == "-" else Path(name), command)


def _read_text(name: str, stdin: TextIO, where: str, source: Source) -> str:
    try:
        if source.path is not None:
            raw = source.path.read_bytes()
        else:
            # The first bytes of a dump show if it has another encoding.
            binary = getattr(stdin, "buffer", None)
            raw = stdin.read().encode("utf-8", "surrogatepass") if binary is None else binary.read()
        raw = foreign.unpack(raw)
        text = "" if (problem := foreign.recognize_bytes(raw, source)) else reading.decode(raw)
    except IsADirectoryError as error:
        found = foreign.recognize_folder(Path(name), source)
        # Only a file of ``-f`` or ``--baseline`` can be replaced by a pipe.
        is_piped = where == name or source.is_baseline
        raise BadInput(where, str(found) if is_piped else found.what) from error
    except (OSError, UnicodeError) as error:
        raise BadInput(where, explain_unreadable(error)) from error
    except ValueError as error:
        raise BadInput(where, str(error)) from error
    if problem := problem or foreign.recognize_text(text):
        raise BadInput(where, str(problem))
    return text


def _split_documents(text: str, source: Source) -> Iterator[tuple[str, Any]]:
    """Split a file into documents, with the place of each; empty ones are left out, but count for the places."""
    documents = list(reading.read_all(text))
    for one in documents:
        place = f"document {one.number}"
        if one.problem is not None:
            said = (
                f"neither YAML nor JSON: {one.problem}" if one.problem.is_form else str(one.problem)
            )
            if said == mistakes.TEMPLATE:
                said = foreign.describe_template(source)
            yield (place if len(documents) > 1 else ""), Illegible(said)
        elif one.value is not None:
            yield place, one.value


def _is_template(body: dict[str, Any]) -> bool:
    """Whether an object is a template whose name Helm must still fill in: such a template can be YAML."""
    meta = body.get("metadata")
    return isinstance(meta, dict) and mistakes.ACTION in str(meta.get("name"))


def _unfold_list(document: list[Any], place: str, whole: str, source: Source) -> Iterator[Placed]:
    """Unfold a bare list of objects, as ``jq .items`` prints it."""
    is_of_objects = bool(document) and all(
        isinstance(one, dict) and {"apiVersion", "kind"} <= one.keys() for one in document
    )
    if not is_of_objects:
        yield Placed(Illegible(_LIST), whole)
        return
    for i, item in enumerate(document, 1):
        at = f"{place}, item {i}"
        yield from _unfold(item, at, at, source)


def _unfold(document: Any, place: str, whole: str, source: Source) -> Iterator[Placed]:
    """Unfold a document into objects. One without a kind is returned, too: it is one mistake among good objects.

    ``whole`` is the place for a mistake in the document as a whole: empty if there is no other document.
    """
    if isinstance(document, Illegible):
        yield Placed(document, place)
    elif isinstance(document, list):
        yield from _unfold_list(document, place, whole, source)
    elif not isinstance(document, dict):
        yield Placed({}, place)
    elif _is_template(document):
        yield Placed(Illegible(foreign.describe_template(source)), whole)
    elif problem := foreign.recognize_document(document, source):
        yield Placed(Illegible(str(problem)), whole)
    elif not str(document.get("kind")).endswith("List"):
        yield Placed(document, place)
    else:
        items = document.get("items")
        if not isinstance(items, list | None):
            yield Placed(
                Illegible(f"{document['kind']}: items must be a list, not {items!r}"), place
            )
            return
        kind = document["kind"].removesuffix("List")
        for i, item in enumerate(items or (), 1):
            if isinstance(item, dict) and kind:
                # Items of a typed list may leave out their kind.
                item.setdefault("kind", kind)
            at = f"{place}, item {i}"
            yield from _unfold(item, at, at, source)
