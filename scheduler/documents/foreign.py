"""Recognizes files and documents that are often given instead of Kubernetes objects or of a trace.

The sentences continue the name of the file, as in ``x.tgz: is a tar archive: unpack it``.
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scheduler.documents import reading
from scheduler.documents.bounds import Unreadable

Json = Mapping[str, Any]
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_TAR_AT, _TAR = 257, b"ustar"
_WANTED = "Kubernetes objects in YAML or JSON are wanted"
GUNZIP = "unpack it first"
_UNPACK = "unpack it and give the YAML or JSON files in it"
# In bytes: a larger file is not read again to recognize it.
_LOOKED_AT_MAX = 1 << 24
DUMP = (
    "a baseline is a dump of a cluster, with its nodes: use `kubectl get nodes,pods,deployments,replicasets,statefulsets,"
    "daemonsets,jobs,cronjobs -A -o json > cluster.json`"
)
_MARKUP = re.compile(r"<(!doctype|html|\?xml)", re.IGNORECASE)
_CHART = "Chart.yaml"
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_COMPOSE = re.compile(r"(docker-)?compose([.-].*)?\.ya?ml")
_OF_VALUES = re.compile(r".*values.*\.ya?ml")
_OF_KUSTOMIZE = "kustomize.config.k8s.io/"
# Keys by which the answers of commands are recognized: no other answer has them.
_ANSWERS = (
    ("simulate", frozenset({"pods", "summary", "passedOver"})),
    ("simulate", frozenset({"modes"})),
    ("replay", frozenset({"runs", "summary"})),
    ("audit --by", frozenset({"rows", "by"})),
    ("audit", frozenset({"demand", "total"})),
    ("explain", frozenset({"kind", "name"})),
    ("explain", frozenset({"kind", "levels"})),
)


class Foreign(NamedTuple):
    """A description of a file or a document, and of what is wanted instead."""

    what: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.what}: {self.wanted}"


class Source(NamedTuple):
    """The origin of a document, and the command that reads it.

    Attributes:
        path: the path of its file; None for standard input.
        command: the command that reads Kubernetes objects, such as ``simulate``.
        is_baseline: whether a dump of a cluster is wanted, which only a cluster can give.
    """

    path: Path | None
    command: str
    is_baseline: bool = False

    def describe_pipe(self, command: str) -> str:
        """Describe how to pipe the output of a command to ours."""
        if self.is_baseline:
            return DUMP
        return f"use `{command} | evenkeel {self.command} -f -`"


def unpack(raw: bytes) -> bytes:
    """Return the bytes of a file, unpacked if the file is compressed by gzip.

    Raises:
        ValueError: the file begins as if it were compressed, but is not; the error says what is wrong.
    """
    if not raw.startswith(_GZIP):
        return raw
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"is a damaged gzip file: {error}") from error


def recognize_bytes(raw: bytes, source: Source) -> Foreign | None:
    """Recognize a file that holds no text; None for one that may hold text."""
    if raw[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        if source.path is not None and _is_packed_chart(raw):
            use = source.describe_pipe(f"helm template {source.path}")
            return Foreign("is a packed Helm chart", use)
        return Foreign("is a tar archive", _UNPACK)
    if raw.startswith(_ZIP):
        return Foreign("is a zip archive", _UNPACK)
    has_mark = raw[:2] in {b"\xff\xfe", b"\xfe\xff"} or raw[:4] == b"\x00\x00\xfe\xff"
    if b"\0" in raw and not has_mark:
        return Foreign("is a binary file", _WANTED)
    return None


def _is_packed_chart(raw: bytes) -> bool:
    try:
        with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
            return any(
                name.count("/") == 1 and name.endswith(f"/{_CHART}") for name in archive.getnames()
            )
    except tarfile.TarError:
        return False


def recognize_text(text: str) -> Foreign | None:
    """Recognize a text that holds no documents; None for one that may hold documents."""
    if _MARKUP.match(text.lstrip()):
        return Foreign("is HTML or XML", _WANTED)
    return None


def recognize_folder(path: Path, source: Source) -> Foreign:
    """Recognize a folder, and name the command that prints the objects in it."""
    source = source._replace(path=path / _CHART)
    if any((path / name).is_file() for name in _KUSTOMIZATIONS):
        return _describe_kustomization(source)
    for chart in (path, path.parent):
        if (chart / _CHART).is_file():
            return Foreign("is a Helm chart", source.describe_pipe(f"helm template {chart}"))
    # With `cat`, a file that does not end in a separator would run into the next.
    join = f"awk 'FNR == 1 {{print \"---\"}} 1' {path}/*.yaml"
    return Foreign("is a folder, not a file", source.describe_pipe(join))


def recognize_document(body: Json, source: Source) -> Foreign | None:
    """Recognize a document that is no Kubernetes object; None for one that may be an object."""
    return next((found for test in _TESTS if (found := test(body, source))), None)


def recognize_file(path: Path) -> Foreign | None:
    """Recognize a file that is given instead of another; None if it is unknown."""
    source = Source(path, "simulate")
    try:
        raw = path.read_bytes() if path.stat().st_size <= _LOOKED_AT_MAX else b""
        if raw.startswith(_GZIP):
            return Foreign("is a gzip file", GUNZIP)
        if (found := recognize_bytes(raw, source)) is not None:
            return found
        document = reading.read_first(reading.decode(raw))
    except (OSError, UnicodeError, Unreadable):
        return None
    if isinstance(document, Mapping) and {"apiVersion", "kind"} <= document.keys():
        return Foreign("holds Kubernetes objects", f"use `evenkeel simulate -f {path}`")
    return recognize_document(document, source) if isinstance(document, Mapping) else None


def describe_template(source: Source) -> str:
    """Describe a file that is a template of Helm."""
    inside = source.path is not None and source.path.parent.name == "templates"
    chart = source.path.parent.parent if source.path is not None and inside else "DIR"
    found = Foreign("is a template of a Helm chart", source.describe_pipe(f"helm template {chart}"))
    return str(found)


def _recognize_chart(body: Json, source: Source) -> Foreign | None:
    is_named = source.path is not None and source.path.name in {_CHART, "Chart.yml"}
    is_formed = body.get("apiVersion") in ("v1", "v2") and {"name", "version"} <= body.keys()
    if "kind" in body or not (is_named or is_formed):
        return None
    use = source.describe_pipe(f"helm template {_find_folder(source)}")
    return Foreign("describes a Helm chart", use)


def _recognize_kustomize(body: Json, source: Source) -> Foreign | None:
    version, kind = str(body.get("apiVersion", "")), body.get("kind")
    if kind is not None:
        is_one = kind in ("Kustomization", "Component") and (
            version.startswith(_OF_KUSTOMIZE) or not version
        )
    else:
        resources = body.get("resources")
        is_formed = isinstance(resources, list) and all(isinstance(one, str) for one in resources)
        is_named = source.path is not None and source.path.name in _KUSTOMIZATIONS
        is_one = is_named or (is_formed and "metadata" not in body)
    return _describe_kustomization(source) if is_one else None


def _describe_kustomization(source: Source) -> Foreign:
    use = source.describe_pipe(f"kubectl kustomize {_find_folder(source)}")
    return Foreign("is a kustomization", use)


def _recognize_compose(body: Json, source: Source) -> Foreign | None:
    services = body.get("services")
    if "kind" in body or not isinstance(services, Mapping):
        return None
    is_named = source.path is not None and _COMPOSE.fullmatch(source.path.name) is not None
    is_formed = bool(services) and all(
        isinstance(one, Mapping) and not one.keys().isdisjoint({"image", "build"})
        for one in services.values()
    )
    if not (is_named or is_formed):
        return None
    use = source.describe_pipe(f"kompose convert -f {source.path or 'FILE'} --stdout")
    return Foreign("is a Docker Compose file", use)


def _recognize_values(body: Json, source: Source) -> Foreign | None:
    if source.path is None or not body.keys().isdisjoint({"kind", "apiVersion", "metadata"}):
        return None
    folders = [
        folder
        for folder in (source.path.parent, source.path.parent.parent)
        if (folder / _CHART).is_file()
    ]
    if not folders and _OF_VALUES.fullmatch(source.path.name) is None:
        return None
    chart = folders[0] if folders else "DIR"
    own = "" if source.path.name == "values.yaml" and folders else f" -f {source.path}"
    use = source.describe_pipe(f"helm template {chart}{own}")
    return Foreign("has the values of a Helm chart", use)


def _recognize_kubeconfig(body: Json, source: Source) -> Foreign | None:
    is_one = body.get("kind") == "Config" and not body.keys().isdisjoint({"clusters", "contexts"})
    if not is_one:
        return None
    use = f"use `evenkeel {source.command} --kubeconfig {source.path or 'FILE'}`"
    return Foreign("is a kubeconfig", f"to read its cluster, {use}")


def _recognize_answer(body: Json, _source: Source) -> Foreign | None:
    if "schemaVersion" not in body or "metadata" in body:
        return None
    for command, keys in _ANSWERS:
        if keys <= body.keys():
            wanted = f"{_WANTED}, such as those from which that answer was made"
            return Foreign(f"is the answer of `evenkeel {command}`", wanted)
    return None


_TESTS: tuple[Callable[[Json, Source], Foreign | None], ...] = (
    _recognize_answer, _recognize_kubeconfig, _recognize_kustomize, _recognize_chart, _recognize_compose, _recognize_values,
)  # fmt: skip


def _find_folder(source: Source) -> Path | str:
    return source.path.parent if source.path is not None else "DIR"
