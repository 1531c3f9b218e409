"""Objects as a user would write them, by the few words that a test is about."""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def container(
    name: str = "main",
    *,
    requests: Mapping[str, str | int] | None = None,
    limits: Mapping[str, str | int] | None = None,
    **more: Any,
) -> Json:
    """A container; extended resources go in both places, as the API wants them."""
    limited = {key: str(amount) for key, amount in (limits or {}).items()}
    asked = {**limited, **{key: str(amount) for key, amount in (requests or {}).items()}}
    resources = {"requests": asked, "limits": limited}
    return {"name": name, "image": "work", "resources": resources, **more}


def pod(
    name: str,
    *,
    requests: Mapping[str, str | int] | None = None,
    limits: Mapping[str, str | int] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    namespace: str = "default",
    **spec: Any,
) -> Json:
    """A pod for Evenkeel with one container; ``spec`` are fields of its spec by their own names."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "schedulerName": "evenkeel",
            "containers": [container(requests=requests, limits=limits)],
            "terminationGracePeriodSeconds": 0,
            **spec,
        },
    }


def vgpu(name: str, *, mem: int = 7500, cores: int = 0, cards: int = 1, **more: Any) -> Json:
    """A pod that asks for shares of cards in HAMi's resources."""
    limits = {"nvidia.com/gpu": cards, "nvidia.com/gpumem": mem}
    if cores:
        limits["nvidia.com/gpucores"] = cores
    return pod(name, limits=limits, **more)


def policy(name: str, **spec: Any) -> Json:
    """A BalancePolicy."""
    return {
        "apiVersion": "scheduling.evenkeel.dev/v1alpha1",
        "kind": "BalancePolicy",
        "metadata": {"name": name},
        "spec": spec,
    }
