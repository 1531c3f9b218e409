"""Reads which object a user asks about, in kubectl's words: ``deploy web -n nlp``, ``deployment.apps/web``."""

from __future__ import annotations

from scheduler.errors import BadInput
from scheduler.simulate.reading.kinds import ObjectKey

POD, NODE, GROUP = "Pod", "Node", "Group"
_DEFAULT = "default"
# By kind: its API group, and the words that kubectl has for it.
_KINDS = {
    POD: ("", ("pod", "pods", "po")),
    NODE: ("", ("node", "nodes", "no")),
    GROUP: ("", ("group", "groups", "podgroup", "podgroups", "pg")),
    "Deployment": ("apps", ("deployment", "deployments", "deploy")),
    "StatefulSet": ("apps", ("statefulset", "statefulsets", "sts")),
    "DaemonSet": ("apps", ("daemonset", "daemonsets", "ds")),
    "ReplicaSet": ("apps", ("replicaset", "replicasets", "rs")),
    "ReplicationController": ("", ("replicationcontroller", "replicationcontrollers", "rc")),
    "Job": ("batch", ("job", "jobs")),
    "CronJob": ("batch", ("cronjob", "cronjobs", "cj")),
}
KINDS = frozenset(_KINDS)
_BY_WORD = {word: kind for kind, (_, words) in _KINDS.items() for word in words}
_VERSIONS = ("v1.", "v1")


def read_key(what: str, name: str | None, namespace: str | None) -> ObjectKey:
    """Read the key of the object that is meant; a node has no namespace.

    Args:
        what: its type, or ``TYPE/NAME``.
        name: its name, or ``NAMESPACE/NAME``; None if ``what`` has it.
        namespace: its namespace, if that is given separately.

    Raises:
        BadInput: the words name no object; the error says what is allowed.
    """
    word, slash, rest = what.partition("/")
    kind = _find_kind(word, what if name is None else None)
    if slash and name is not None:
        raise BadInput(
            "NAME",
            f'"{name}" is one name too many: {what} is already a type and a name; write one of them',
        )
    given = rest if slash else name
    if given is None:
        raise BadInput("NAME", f"is missing: write {word} NAME or {word}/NAME")
    if kind == NODE:
        if "/" in given or not given:
            raise BadInput("NAME", f'"{given}" is not a node name: write NAME without a namespace')
        return ObjectKey(NODE, "", given)
    before, own = _split_name(kind, given, namespace)
    if "/" in before or not own or given.startswith("/"):
        raise BadInput(
            "NAME", f'"{given}" is not a name: write NAME with -n NAMESPACE, or NAMESPACE/NAME'
        )
    if namespace is not None and before and before != namespace:
        raise BadInput("--namespace", f'"{namespace}" is not the namespace of {given}; write one')
    return ObjectKey(kind, before or namespace or _DEFAULT, own)


def _split_name(kind: str, given: str, namespace: str | None) -> tuple[str, str]:
    """Split ``NAMESPACE/NAME``; a group of a LeaderWorkerSet has a name with a slash."""
    if kind != GROUP:
        before, _, own = given.rpartition("/")
    elif namespace is not None and not given.startswith(f"{namespace}/"):
        before, own = "", given
    else:
        before, slash, own = given.partition("/")
        before, own = (before, own) if slash else ("", before)
    return before, own


def _find_kind(word: str, alone: str | None) -> str:
    """Find the kind that a word means; ``alone`` is the whole text if it may be a name without a type."""
    plain, _, group = word.lower().partition(".")
    for version in _VERSIONS:
        group = group.removeprefix(version)
    kind = _BY_WORD.get(plain)
    if kind is not None and group in ("", _KINDS[kind][0]):
        return kind
    others = (POD, NODE, GROUP)
    workloads = [words[0] for one, (_, words) in _KINDS.items() if one not in others]
    known = f"pod, node, group and the workloads {', '.join(workloads)}"
    hint = f"; for a pod write pod {alone}" if alone else ""
    raise BadInput("WHAT", f'"{word}" cannot be explained; allowed are {known}{hint}')
