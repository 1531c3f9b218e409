"""Reads how queues share from the configuration: the fields of Kueue's own under ``queues``, and KAI's under ``queues.kai``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from scheduler.api import values
from scheduler.api.groups.readers import reading
from scheduler.api.queues.settings import (
    STRATEGIES,
    HistorySettings,
    KaiSettings,
    QueueSettings,
    ReadySettings,
    WebhookSettings,
)
from scheduler.errors import BadInput

_RESOURCES, _CHECK = "resources", "quotaCheckStrategy"
# By Kueue's words, the default first.
_CHECKS = "BlockUndeclared", "IgnoreUndeclared"
_FAIR, _HISTORY, _READY = "fairSharing", "admissionFairSharing", "waitForPodsReady"
_WEBHOOK, _MOVES, _PROMISES, _KUEUE_NAMESPACE = "webhook", "moves", "promises", "kueueNamespace"
# How a webhook is served.
SERVING = ("port", "name", "namespace", "certificates")
FIELDS = (
    "kueue",
    _KUEUE_NAMESPACE,
    "kai",
    _FAIR,
    _HISTORY,
    _READY,
    _WEBHOOK,
    _MOVES,
    _PROMISES,
    _RESOURCES,
)
_STAMPS = ("Eviction", "Creation")
_OF_KAI = "kValue", "usage", "usageHalfLifeTime", "saturationMultiplier", "reclaimMinRuntimeMethod"
_METHODS = ("lca", "queue")
_INT32_MAX = 2**31 - 1
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_REQUEUING = "requeuingStrategy"


def read_settings(given: Any, field: str = "queues") -> QueueSettings:
    """Read the settings of queues.

    Raises:
        BadInput: a field is unknown or not what is allowed; names it.
    """
    raw = values.read_mapping(given, field)
    values.refuse_unknown(raw, field, FIELDS)
    ready = values.read_mapping(raw.get(_READY), f"{field}.{_READY}")
    kueue = values.read_flag(raw.get("kueue", False), f"{field}.kueue")
    webhook = _read_webhook(raw.get(_WEBHOOK), f"{field}.{_WEBHOOK}")
    if webhook is not None and not kueue:
        raise BadInput(f"{field}.{_WEBHOOK}", f"needs {field}.kueue: true")
    return QueueSettings(
        kueue=kueue,
        kueue_namespace=_read_name(raw, field, _KUEUE_NAMESPACE, QueueSettings().kueue_namespace),
        kai=_read_kai(raw.get("kai", False), f"{field}.kai"),
        strategies=_read_strategies(raw.get(_FAIR), f"{field}.{_FAIR}"),
        moves=values.read_flag(raw.get(_MOVES, False), f"{field}.{_MOVES}"),
        promises=values.read_flag(raw.get(_PROMISES, False), f"{field}.{_PROMISES}"),
        ignores_undeclared=_read_check(raw.get(_RESOURCES), f"{field}.{_RESOURCES}"),
        history=_read_history(raw.get(_HISTORY), f"{field}.{_HISTORY}"),
        by_eviction=_read_stamp(ready, f"{field}.{_READY}"),
        ready=None if raw.get(_READY) is None else _read_ready(ready, f"{field}.{_READY}"),
        webhook=webhook,
    )


def _read_check(given: Any, field: str) -> bool:
    """Read whether resources that a queue has no quota of are left out of account."""
    raw = values.read_mapping(given, field)
    values.refuse_unknown(raw, field, (_CHECK,))
    found = raw.get(_CHECK, _CHECKS[0])
    if found not in _CHECKS:
        wanted = " or ".join(_CHECKS)
        raise BadInput(f"{field}.{_CHECK}", f"{values.quote(found)} is not {wanted}")
    return bool(found == _CHECKS[1])


def _read_webhook(given: Any, field: str) -> WebhookSettings | None:
    if given is None:
        return None
    raw = values.read_mapping(given, field)
    values.refuse_unknown(raw, field, SERVING)
    return read_serving(raw, field)


def read_serving(raw: Mapping[str, Any], field: str) -> WebhookSettings:
    """Read how a webhook is served, of fields that may have others beside them.

    Raises:
        BadInput: a field is not what is allowed; names it.
    """
    default = WebhookSettings()
    return WebhookSettings(
        port=values.read_integer(raw.get("port", default.port), f"{field}.port", 0, 2**16 - 1),
        name=_read_name(raw, field, "name", default.name),
        namespace=_read_name(raw, field, "namespace", default.namespace),
        certificates=_read_text(raw, field, "certificates", default.certificates),
    )


def _read_name(raw: Mapping[str, Any], under: str, key: str, default: str) -> str:
    """Read the name of an object or a namespace."""
    text = _read_text(raw, under, key, default)
    if not _DNS_LABEL.fullmatch(text):
        allowed = "1 to 63 lower-case letters, digits and '-'"
        raise BadInput(f"{under}.{key}", f"{values.quote(text)} is not a name: {allowed}")
    return text


def _read_text(raw: Mapping[str, Any], under: str, key: str, default: str) -> str:
    given = raw.get(key, default)
    if not isinstance(given, str):
        raise BadInput(f"{under}.{key}", f"{values.quote(given)} is not a text")
    return given


def _read_kai(given: Any, field: str) -> KaiSettings | None:
    """Read how KAI's queues share: true, or how they do it in other ways than KAI does."""
    if not isinstance(given, Mapping):
        return KaiSettings() if values.read_flag(given, field) else None
    values.refuse_unknown(given, field, _OF_KAI)
    default = KaiSettings()
    half_life = _read_seconds(given, field, _OF_KAI[2], HistorySettings().half_life_seconds)
    has_usage = values.read_flag(given.get(_OF_KAI[1], False), f"{field}.{_OF_KAI[1]}")
    method = given.get(_OF_KAI[4], _METHODS[0])
    if method not in _METHODS:
        wanted = " or ".join(_METHODS)
        raise BadInput(f"{field}.{_OF_KAI[4]}", f"{values.quote(method)} is not {wanted}")
    return KaiSettings(
        k=_read_number(given.get(_OF_KAI[0], default.k), f"{field}.{_OF_KAI[0]}", 0),
        half_life_seconds=half_life if has_usage else default.half_life_seconds,
        multiplier=_read_number(
            given.get(_OF_KAI[3], default.multiplier), f"{field}.{_OF_KAI[3]}", 1
        ),
        by_common=method == _METHODS[0],
    )


def _read_strategies(given: Any, field: str) -> tuple[str, ...] | None:
    if given is None:
        return None
    raw = values.read_mapping(given, field)
    values.refuse_unknown(raw, field, ("enable", "preemptionStrategies"))
    if not values.read_flag(raw.get("enable", True), f"{field}.enable"):
        return None
    where = f"{field}.preemptionStrategies"
    found = tuple(values.read_items(raw.get("preemptionStrategies"), where, str))
    # The second rule only makes sense after the first one.
    if found not in {(), STRATEGIES, STRATEGIES[:1], STRATEGIES[1:]}:
        wanted = f"[{', '.join(STRATEGIES)}], or one of them"
        raise BadInput(where, f"{values.quote(list(found))} is not allowed: write {wanted}")
    return found or STRATEGIES


def _read_history(given: Any, field: str) -> HistorySettings:
    default = HistorySettings()
    raw = values.read_mapping(given, field)
    fields = ("usageHalfLifeTime", "usageSamplingInterval", "resourceWeights")
    values.refuse_unknown(raw, field, fields)
    weights = raw.get("resourceWeights")
    return HistorySettings(
        half_life_seconds=_read_seconds(raw, field, fields[0], default.half_life_seconds),
        sampling_seconds=_read_seconds(raw, field, fields[1], default.sampling_seconds),
        weights=None if weights is None else _read_weights(weights, f"{field}.{fields[2]}"),
    )


def _read_seconds(raw: Mapping[str, Any], under: str, key: str, default: float) -> float:
    given = raw.get(key)
    if given is None:
        return default
    if not isinstance(given, str):
        raise BadInput(f"{under}.{key}", f"{values.quote(given)} is not a duration such as 168h")
    return reading.parse_seconds(given, f"{under}.{key}")


def _read_weights(given: Any, field: str) -> dict[str, float]:
    raw = values.read_mapping(given, field)
    return {name: _read_number(weight, f"{field}[{name}]", 0) for name, weight in raw.items()}


def _read_number(given: Any, field: str, low: int) -> float:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not low <= given < math.inf:
        raise BadInput(field, f"{values.quote(given)} is not a number of at least {low}")
    return float(given)


def _read_stamp(raw: Mapping[str, Any], field: str) -> bool:
    """Read whether a workload that was evicted because its pods were not ready loses its place in the order."""
    where = f"{field}.{_REQUEUING}"
    strategy = values.read_mapping(raw.get(_REQUEUING), where)
    stamp = strategy.get("timestamp", _STAMPS[0])
    if stamp not in _STAMPS:
        wanted = " or ".join(_STAMPS)
        raise BadInput(f"{where}.timestamp", f"{values.quote(stamp)} is not {wanted}")
    return bool(stamp == _STAMPS[0])


def _read_ready(raw: Mapping[str, Any], field: str) -> ReadySettings | None:
    """Read how long pods may take until they are ready; None if it is not enabled."""
    known = ("enable", "timeout", "recoveryTimeout", "blockAdmission", _REQUEUING)
    values.refuse_unknown(raw, field, known)
    where = f"{field}.{_REQUEUING}"
    strategy = values.read_mapping(raw.get(_REQUEUING), where)
    counts = ("backoffLimitCount", "backoffBaseSeconds", "backoffMaxSeconds")
    values.refuse_unknown(strategy, where, ("timestamp", *counts))
    limit, first, most = (_read_count(strategy, where, key) for key in counts)
    default = ReadySettings()
    timeout = _read_seconds(raw, field, "timeout", default.timeout_seconds)
    recovery = None
    # Kueue's way to say that a failed pod may take as long as it needs to come back.
    if raw.get("recoveryTimeout") not in {"0", "0s"}:
        recovery = _read_seconds(raw, field, "recoveryTimeout", timeout)
    blocks = values.read_flag(raw.get("blockAdmission", False), f"{field}.blockAdmission")
    if not values.read_flag(raw.get("enable", True), f"{field}.enable"):
        return None
    return ReadySettings(
        timeout_seconds=timeout,
        recovery_seconds=recovery,
        blocks=blocks,
        limit=limit,
        first_seconds=default.first_seconds if first is None else first,
        most_seconds=default.most_seconds if most is None else most,
    )


def _read_count(raw: Mapping[str, Any], under: str, key: str) -> int | None:
    given = raw.get(key)
    return None if given is None else values.read_integer(given, f"{under}.{key}", 0, _INT32_MAX)
