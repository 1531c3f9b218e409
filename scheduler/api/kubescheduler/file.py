"""The file as a whole: settings of the process, and profiles.

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
# How kube-scheduler's own process works: no decision of Evenkeel depends on it.
_OF_PROCESS = ("parallelism", "enableProfiling", "enableContentionProfiling")
_FIELDS = (
    "apiVersion", "kind", "profiles", "podInitialBackoffSeconds", "podMaxBackoffSeconds", _PERCENT,
    "extenders", "clientConnection", "leaderElection", "delayCacheUntilActive", *_OF_PROCESS,
)  # fmt: skip


class KubeProfile(NamedTuple):
    """The settings of a profile.

    Attributes:
        plugins: None if all plugins are as in kube-scheduler's default profile.
        preemption: its pods may take the place of other pods.
    """

    scheduler_name: str
    plugins: KubePlugins | None
    preemption: bool


class KubeFile(NamedTuple):
    """The settings of a file that Evenkeel uses. There is at least one profile; times are in seconds."""

    profiles: tuple[KubeProfile, ...]
    backoff: float
    backoff_max: float


def is_kube_file(raw: Mapping[str, Any]) -> bool:
    """Whether a file has ``apiVersion`` or ``kind``, which Evenkeel's own file has not."""
    return "apiVersion" in raw or "kind" in raw


def read_file(raw: Mapping[str, Any]) -> KubeFile:
    """Read a file.

    Raises:
        BadInput: the file is of another kind or version, or has a setting that is not allowed or that Evenkeel cannot
            honour; the error names the field.
    """
    for key, wanted in (("kind", KIND), ("apiVersion", arguments.VERSION)):
        if raw.get(key) != wanted:
            raise BadInput(key, f"{raw.get(key)!r} is not {wanted}")
    for key in raw:
        if key not in _FIELDS:
            raise BadInput(key, f"unknown field of {KIND}; allowed are {', '.join(_FIELDS)}")
    _refuse_others(raw)
    _check_percentage(raw, "")
    backoff = _read_seconds(raw, "podInitialBackoffSeconds", 1)
    backoff_max = _read_seconds(raw, "podMaxBackoffSeconds", 10)
    if backoff_max < backoff:
        raise BadInput(
            "podMaxBackoffSeconds", f"must be at least podInitialBackoffSeconds, which is {backoff}"
        )
    return KubeFile(_read_profiles(raw.get("profiles")), float(backoff), float(backoff_max))


def _refuse_others(raw: Mapping[str, Any]) -> None:
    """Refuse settings that Evenkeel cannot honour; settings of kube-scheduler's own process are ignored."""
    if values.read_items(raw.get("extenders"), "extenders", dict):
        raise BadInput(
            "extenders",
            "not supported: Evenkeel calls no extenders; remove them (HAMi's extender is not needed)",
        )
    connection = values.read_mapping(raw.get("clientConnection"), "clientConnection")
    if connection.get("kubeconfig"):
        raise BadInput("clientConnection.kubeconfig", "remove it and use --kubeconfig")
    election = values.read_mapping(raw.get("leaderElection"), "leaderElection")
    if election and election.get("leaderElect", True) is not False:
        raise BadInput("leaderElection", "remove it; flags of evenkeel run set leader election")
    if raw.get("delayCacheUntilActive"):
        raise BadInput(
            "delayCacheUntilActive",
            "not supported: standby replicas always keep their caches filled",
        )


def _check_percentage(raw: Mapping[str, Any], where: str) -> None:
    """Check that all nodes are to be looked at, as Evenkeel always does: 100, or 0, which leaves it to the scheduler."""
    given = raw.get(_PERCENT)
    if given is not None and values.read_integer(given, f"{where}{_PERCENT}", 0, 100) not in {
        0,
        100,
    }:
        raise BadInput(
            f"{where}{_PERCENT}", f"{given} is not supported: Evenkeel scores all nodes, 0 or 100"
        )


def _read_seconds(raw: Mapping[str, Any], key: str, default: int) -> int:
    given = raw.get(key)
    return default if given is None else values.read_integer(given, key, 1, 2**31 - 1)


def _read_profiles(raw: Any) -> tuple[KubeProfile, ...]:
    given = values.read_items(raw, "profiles", dict) or [{}]
    found: dict[str, KubeProfile] = {}
    for i, one in enumerate(given):
        where = f"profiles[{i}]"
        values.refuse_unknown(one, where, ("schedulerName", _PERCENT, "plugins", "pluginConfig"))
        # A single profile may have no name.
        name = one.get("schedulerName", DEFAULT_NAME if len(given) == 1 else None)
        if not isinstance(name, str) or not name:
            raise BadInput(f"{where}.schedulerName", "is required")
        if name in found:
            raise BadInput(f"{where}.schedulerName", f'"{name}" appears twice')
        _check_percentage(one, f"{where}.")
        on = points.read_points(one.get("plugins"), f"{where}.plugins")
        coherence.check_plugins(on, f"{where}.plugins")
        preempts = "DefaultPreemption" in on.at["postFilter"]
        found[name] = KubeProfile(name, _read_plugins(on, one, where), preempts)
    return tuple(found.values())


def _read_plugins(on: points.On, raw: Mapping[str, Any], field: str) -> KubePlugins | None:
    changes = arguments.read_arguments(raw.get("pluginConfig"), f"{field}.pluginConfig")
    plugins = KubePlugins(
        not_asked=_list_off(on, "filter"),
        weights=(*on.weights, *((name, 0) for name in sorted(_list_off(on, "score")))),
        **changes,
    )
    return None if plugins == kube_plugins.DEFAULT else plugins


def _list_off(on: points.On, point: str) -> frozenset[str]:
    """List the plugins that could be on at a point, and are off."""
    return frozenset(name for name, at in points.PLUGINS.items() if point in at) - on.at[point]
