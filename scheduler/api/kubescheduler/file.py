"""The file as a whole: what holds for the process, and its profiles.

Source: kube-scheduler's types.go, defaults.go and validation.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from scheduler.api import kube_plugins, values
from scheduler.api.kube_plugins import KubePlugins
from scheduler.api.kubescheduler import arguments, coherence, points
from scheduler.errors import BadInput

KIND = "KubeSchedulerConfiguration"
DEFAULT_NAME = "default-scheduler"
_PERCENT = "percentageOfNodesToScore"
# How kube-scheduler's own process works: nothing that Evenkeel decides hangs on it.
_OF_PROCESS = ("parallelism", "enableProfiling", "enableContentionProfiling")
_FIELDS = (
    "apiVersion", "kind", "profiles", "podInitialBackoffSeconds", "podMaxBackoffSeconds", _PERCENT,
    "extenders", "clientConnection", "leaderElection", "delayCacheUntilActive", *_OF_PROCESS,
)  # fmt: skip


class KubeProfile(NamedTuple):
    """What a profile says.

    Attributes:
        plugins: None where all is as kube-scheduler has it by default.
        preemption: its pods may take the place of others.
    """

    scheduler_name: str
    plugins: KubePlugins | None
    preemption: bool


class KubeFile(NamedTuple):
    """What a file says, of what Evenkeel does with it. There is at least one profile; times are in seconds."""

    profiles: tuple[KubeProfile, ...]
    backoff: float
    backoff_max: float


def is_one(raw: Mapping[str, Any]) -> bool:
    """Whether a file says what it is, as Evenkeel's own does not."""
    return "apiVersion" in raw or "kind" in raw


def read(raw: Mapping[str, Any]) -> KubeFile:
    """What a file says.

    Raises:
        BadInput: it is of another kind or version, or says what is not allowed or what Evenkeel cannot do; names
            the field.
    """
    for key, wanted in (("kind", KIND), ("apiVersion", arguments.VERSION)):
        if raw.get(key) != wanted:
            raise BadInput(key, f"{raw.get(key)!r} is not {wanted}")
    for key in raw:
        if key not in _FIELDS:
            raise BadInput(key, f"unknown field of {KIND}; allowed are {', '.join(_FIELDS)}")
    _refuse_others(raw)
    _percentage(raw, "")
    backoff = _seconds(raw, "podInitialBackoffSeconds", 1)
    backoff_max = _seconds(raw, "podMaxBackoffSeconds", 10)
    if backoff_max < backoff:
        raise BadInput(
            "podMaxBackoffSeconds", f"must be at least podInitialBackoffSeconds, which is {backoff}"
        )
    return KubeFile(_profiles(raw.get("profiles")), float(backoff), float(backoff_max))


def _refuse_others(raw: Mapping[str, Any]) -> None:
    """What would have to be done and is not; what is said of kube-scheduler's own process is passed over."""
    if values.items(raw.get("extenders"), "extenders", dict):
        raise BadInput(
            "extenders",
            "not supported: Evenkeel calls no extenders; remove them (HAMi's extender is not needed)",
        )
    connection = values.mapping(raw.get("clientConnection"), "clientConnection")
    if connection.get("kubeconfig"):
        raise BadInput("clientConnection.kubeconfig", "remove it and use --kubeconfig")
    election = values.mapping(raw.get("leaderElection"), "leaderElection")
    if election and election.get("leaderElect", True) is not False:
        raise BadInput("leaderElection", "remove it; flags of evenkeel run set leader election")
    if raw.get("delayCacheUntilActive"):
        raise BadInput(
            "delayCacheUntilActive",
            "not supported: standby replicas always keep their caches filled",
        )


def _percentage(raw: Mapping[str, Any], where: str) -> None:
    """All nodes are always looked at, which is what 100 says; 0 leaves it to the scheduler."""
    given = raw.get(_PERCENT)
    if given is not None and values.integer(given, f"{where}{_PERCENT}", 0, 100) not in {0, 100}:
        raise BadInput(
            f"{where}{_PERCENT}", f"{given} is not supported: Evenkeel scores all nodes, 0 or 100"
        )


def _seconds(raw: Mapping[str, Any], key: str, default: int) -> int:
    given = raw.get(key)
    return default if given is None else values.integer(given, key, 1, 2**31 - 1)


def _profiles(raw: Any) -> tuple[KubeProfile, ...]:
    given = values.items(raw, "profiles", dict) or [{}]
    found: dict[str, KubeProfile] = {}
    for i, one in enumerate(given):
        where = f"profiles[{i}]"
        values.known(one, where, ("schedulerName", _PERCENT, "plugins", "pluginConfig"))
        # Only one profile need not have a name.
        name = one.get("schedulerName", DEFAULT_NAME if len(given) == 1 else None)
        if not isinstance(name, str) or not name:
            raise BadInput(f"{where}.schedulerName", "is required")
        if name in found:
            raise BadInput(f"{where}.schedulerName", f'"{name}" appears twice')
        _percentage(one, f"{where}.")
        on = points.read(one.get("plugins"), f"{where}.plugins")
        coherence.check(on, f"{where}.plugins")
        preempts = "DefaultPreemption" in on.at["postFilter"]
        found[name] = KubeProfile(name, _plugins(on, one, where), preempts)
    return tuple(found.values())


def _plugins(on: points.On, raw: Mapping[str, Any], field: str) -> KubePlugins | None:
    changes = arguments.read(raw.get("pluginConfig"), f"{field}.pluginConfig")
    plugins = KubePlugins(
        not_asked=_off(on, "filter"),
        weights=(*on.weights, *((name, 0) for name in sorted(_off(on, "score")))),
        **changes,
    )
    return None if plugins == kube_plugins.DEFAULT else plugins


def _off(on: points.On, point: str) -> frozenset[str]:
    """The plugins that could be on at a point, and are not."""
    return frozenset(name for name, at in points.PLUGINS.items() if point in at) - on.at[point]
