"""All settings, with every default, frozen and checked once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import yaml

from scheduler.api import names, placement, values
from scheduler.api.limits import PodLimits
from scheduler.api.placement import Placement
from scheduler.errors import BadInput

# The same bound as kube-scheduler's own weights; the keys by which nodes are compared have room for far more.
_MOST = {"modeWeight": 100}
_LABEL = re.compile(r"([a-zA-Z0-9._-]+/)?[a-zA-Z0-9._-]+(=[a-zA-Z0-9._-]*)?|")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the configuration file may set.

    Attributes:
        scheduler_name: pods with this ``spec.schedulerName`` are ours.
        placement: the default for pods that neither an annotation nor a BalancePolicy steers.
        mode_weight: weight of the mode's term beside taints 3 and node affinity 2, at most 100.
        backoff_seconds, backoff_max_seconds: a pod that failed waits this long, doubling up to the most.
        binds_in_flight: requests to the API server at once.
        slice_pods: most pods decided between two looks at the streams.
        hami_node_label: key=value, or a key, of the nodes on which HAMi's device plugin runs; empty for none.
        lock_timeout_seconds: age at which a HAMi node lock may be taken over.
        pod_limits: how much one pod may say, see ``api/limits.py``.
    """

    scheduler_name: str = names.SCHEDULER
    placement: Placement = field(default_factory=Placement)
    mode_weight: int = 5
    backoff_seconds: float = 1.0
    backoff_max_seconds: float = 10.0
    binds_in_flight: int = 32
    slice_pods: int = 64
    hami_node_label: str = names.HAMI_NODE_LABEL
    lock_timeout_seconds: float = 300.0
    pod_limits: PodLimits = field(default_factory=PodLimits)


def load(path: Path | None) -> Config:
    """The configuration of a YAML file, the defaults without one.

    The file has the camel-case names of ``Config``'s fields, ``placement`` with the fields of a
    BalancePolicy's spec (scoring, nodePolicy, gpuPolicy), and ``podLimits`` with those of ``PodLimits``.

    Raises:
        BadInput: a field is unknown or not what is allowed; names it.
    """
    if path is None:
        return Config()
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise BadInput("file", str(error)) from error
    return parse(raw)


def parse(raw: Any) -> Config:
    """The configuration of plain values.

    Raises:
        BadInput: as ``load``.
    """
    if not isinstance(raw, Mapping):
        raise BadInput("file", "must hold a mapping of settings")
    known = {_camel(f.name): f for f in fields(Config)}
    changes: dict[str, Any] = {}
    for key, given in raw.items():
        if key not in known:
            raise BadInput(str(key), f"unknown setting; allowed are {', '.join(sorted(known))}")
        if key == "placement":
            parsed = placement.parse(given, "placement")
            changes["placement"] = replace(Placement(), **parsed)
        elif key == "podLimits":
            changes["pod_limits"] = _pod_limits(given)
        elif key == "hamiNodeLabel":
            changes["hami_node_label"] = _label(key, given)
        else:
            changes[known[key].name] = _scalar(key, given, getattr(Config(), known[key].name))
    return Config(**changes)


def _pod_limits(given: Any) -> PodLimits:
    bounds = values.mapping(given, "podLimits")
    values.known(bounds, "podLimits", tuple(f.name for f in fields(PodLimits)))
    return PodLimits(
        **{k: values.integer(n, f"podLimits.{k}", 1, 2**31 - 1) for k, n in bounds.items()}
    )


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _label(key: str, given: Any) -> str:
    if not isinstance(given, str) or not _LABEL.fullmatch(given):
        raise BadInput(key, f'{given!r} is neither "key=value" nor "key" nor empty')
    return given


def _scalar(key: str, given: Any, default: str | float) -> str | int | float:
    if isinstance(default, str):
        if not isinstance(given, str) or not given:
            raise BadInput(key, f"{given!r} is not a text")
        return given
    wanted = (int,) if isinstance(default, int) else (int, float)
    # Neither .inf nor .nan is within: no comparison holds for nan.
    most = _MOST.get(key, 2**31 - 1)
    if not isinstance(given, wanted) or isinstance(given, bool) or not 0 < given <= most:
        kind = "a whole number" if isinstance(default, int) else "a number"
        allowed = f"within 1..{most}" if key in _MOST else "above 0"
        raise BadInput(key, f"{given!r} is not {kind} {allowed}")
    return type(default)(given)
