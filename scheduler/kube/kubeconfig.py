"""Reads the access to a cluster; if there is none, says what was looked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kubernetes import config as kubernetes_config

from scheduler.documents import reading
from scheduler.errors import BadInput, explain_unreadable, join_lines

IN_CLUSTER_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_HOME = "~/.kube/config"
_OPTION = "--kubeconfig"


class _Found(NamedTuple):
    """The files of a kubeconfig, which are read as one, and their name for a user."""

    named: str
    files: tuple[Path, ...]


def load_access(configuration: Any, path: str | None, context: str | None) -> None:
    """Read access into a configuration of the Kubernetes client.

    It is read from the first of these: the file that is named, the files of $KUBECONFIG, the service account of the pod
    (unless a context is named), ~/.kube/config.

    Raises:
        BadInput: there is no access, or it cannot be read; the text says what was looked for, or which contexts exist.
    """
    if not (path or context or os.environ.get("KUBECONFIG")) and IN_CLUSTER_TOKEN.exists():
        try:
            kubernetes_config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        except kubernetes_config.ConfigException as error:
            raise BadInput(_OPTION, f"the pod's service account cannot be used: {error}") from error
        return
    found = _find_files(path)
    _check_context(found, context)
    try:
        kubernetes_config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=os.pathsep.join(map(str, found.files)),
            context=context,
            client_configuration=configuration,
        )
    except Exception as error:  # whatever a plugin for logging in may raise
        raise BadInput(found.named, join_lines(error)) from error


def _find_files(path: str | None) -> _Found:
    """Return the existing files of the first place that is named: the option, $KUBECONFIG, or the home directory.

    Raises:
        BadInput: none exists.
    """
    listed = os.environ.get("KUBECONFIG", "")
    if path:
        named, files = f"{_OPTION} {path}", _split_paths(path)
    elif listed:
        named, files = f"$KUBECONFIG={listed}", _split_paths(listed)
    else:
        named, files = _HOME, _split_paths(_HOME)
    existing = tuple(file for file in files if file.exists())
    if existing:
        return _Found(named, existing)
    if path:
        raise BadInput(named, "no such file")
    if listed:
        raise BadInput(named, f"no such file; name another with {_OPTION} FILE")
    raise BadInput(
        _OPTION,
        "no access to a cluster was found: $KUBECONFIG is not set, there is no service account of a pod at "
        f"{IN_CLUSTER_TOKEN}, and no file {files[0]}; name one with {_OPTION} FILE",
    )


def _split_paths(listed: str) -> list[Path]:
    return [Path(one).expanduser() for one in listed.split(os.pathsep) if one]


def _check_context(found: _Found, context: str | None) -> None:
    """Refuse a context that does not exist, and no context if one has to be chosen.

    Raises:
        BadInput: names the contexts that exist.
    """
    names: dict[str, None] = {}
    current = ""
    for file in found.files:
        content = _read_file(found, file)
        contexts = content.get("contexts")
        for one in contexts if isinstance(contexts, list) else ():
            if isinstance(one, dict) and one.get("name"):
                names[str(one["name"])] = None
        current = current or str(content.get("current-context") or "")
    known = f"its contexts are {', '.join(names) or 'none'}"
    if context and context not in names:
        raise BadInput(f"--context {context}", f"is not in {found.named}; {known}")
    if not context and not current:
        raise BadInput("--context", f"is needed, {found.named} has no current-context; {known}")


def _read_file(found: _Found, file: Path) -> Mapping[str, Any]:
    try:
        content = reading.read_first(reading.decode(file.read_bytes()))
    except (OSError, UnicodeError) as error:
        raise BadInput(found.named, f"{file} {explain_unreadable(error)}") from error
    except ValueError as error:
        raise BadInput(found.named, f"{file} is not YAML: {join_lines(error)}") from error
    if not isinstance(content, dict):
        raise BadInput(
            found.named, f"{file} is not a kubeconfig: it must be a mapping with contexts"
        )
    return content
