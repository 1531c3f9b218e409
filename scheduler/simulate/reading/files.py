"""Manifests from files: YAML or JSON, single objects, lists, several documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from scheduler.documents import mistakes, reading
from scheduler.errors import BadInput, unreadable
from scheduler.simulate.reading.kinds import Illegible


class Placed(NamedTuple):
    """An object, and where in its file it stands, such as ``document 3, item 2``."""

    body: dict[str, Any]
    place: str


def in_words(name: str) -> str:
    """A file for who waits until it is read: its name, and how large it is if that may take long."""
    if name == "-":
        return "standard input"
    try:
        size = Path(name).stat().st_size
    except OSError:
        return name
    return f"{name} ({size / 1e6:,.0f} MB)" if size >= 1e6 else name


def read(name: str, stdin: TextIO) -> list[dict[str, Any]]:
    """All objects of a file, see ``placed``."""
    return [body for body, _ in placed(name, stdin)]


def placed(name: str, stdin: TextIO, where: str = "") -> list[Placed]:
    """All objects of a file, or of standard input when ``name`` is ``-``, and where each stands; Lists are unfolded.

    What has no name can be told by its place alone. A document that cannot be read stands there as ``Illegible``.

    Raises:
        BadInput: the file cannot be read; calls it ``where`` if that is given, such as ``--add-node FILE``.
    """
    where = where or name
    documents = _documents(_text(name, stdin, where))
    return [one for place, document in documents for one in _unfold(document, place)]


def policies(name: str, stdin: TextIO, where: str) -> list[Placed]:
    """BalancePolicies of a file; one that is only a spec is named after the file.

    Raises:
        BadInput: as ``placed``.
    """
    found: list[Placed] = []
    for place, document in _documents(_text(name, stdin, where)):
        is_spec = isinstance(document, dict) and not isinstance(document, Illegible)
        if is_spec and "kind" not in document:
            body = {"kind": "BalancePolicy", "metadata": {"name": Path(name).stem}}
            found.append(Placed({**body, "spec": document}, place))
        else:
            found += _unfold(document, place)
    return found


def _text(name: str, stdin: TextIO, where: str) -> str:
    try:
        if name != "-":
            return reading.decoded(Path(name).read_bytes())
        # A dump of another encoding says so in its first bytes.
        binary = getattr(stdin, "buffer", None)
        return stdin.read() if binary is None else reading.decoded(binary.read())
    except IsADirectoryError as error:
        raise BadInput(where, _folder(Path(name))) from error
    except (OSError, UnicodeError) as error:
        raise BadInput(where, unreadable(error)) from error


def _folder(path: Path) -> str:
    """Why a folder is not read, and which command prints what is in it."""
    if (path / "kustomization.yaml").is_file():
        return f"is a kustomization: give what `kubectl kustomize {path}` prints"
    for chart in (path, path.parent):
        if (chart / "Chart.yaml").is_file():
            return f"is a chart of Helm: give what `helm template {chart}` prints"
    return "is a folder, not a file"


def _documents(text: str) -> Iterator[tuple[str, Any]]:
    """Each document that holds anything or cannot be read, and its place: empty ones count."""
    documents = list(reading.read_all(text))
    for one in documents:
        place = f"document {one.number}"
        if one.problem is not None:
            said = (
                f"neither YAML nor JSON: {one.problem}" if one.problem.is_form else str(one.problem)
            )
            yield (place if len(documents) > 1 else ""), Illegible(said)
        elif one.value is not None:
            yield place, one.value


def _is_template(body: dict[str, Any]) -> bool:
    """Whether an object's name is still to be written by Helm: such a template can be YAML."""
    meta = body.get("metadata")
    return isinstance(meta, dict) and mistakes.ACTION in str(meta.get("name"))


def _unfold(document: Any, place: str) -> Iterator[Placed]:
    """The objects. What is none, or has no kind, is handed on: it is one mistake among objects that are good."""
    if not isinstance(document, dict):
        yield Placed({}, place)
    elif _is_template(document):
        yield Placed(Illegible(mistakes.TEMPLATE), place)
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
                # Items of a typed list need not repeat their kind.
                item.setdefault("kind", kind)
            yield from _unfold(item, f"{place}, item {i}")
