"""How the configuration of queues is read: what is allowed, what it means, and what is wrong with the rest."""

from __future__ import annotations

import re
from typing import Any

import pytest

from scheduler.api.queues.configuration import read_settings
from scheduler.api.queues.settings import ReadySettings, WebhookSettings
from scheduler.errors import BadInput


def read(given: Any) -> ReadySettings | None:
    return read_settings({"waitForPodsReady": given}).ready


def test_pods_have_half_an_hour_where_no_time_is_set() -> None:
    assert read_settings({}).ready is None
    assert read({}) == ReadySettings(
        timeout_seconds=1800, recovery_seconds=1800, first_seconds=60, most_seconds=3600
    )
    assert read({"enable": False, "timeout": "5m"}) is None


def test_all_fields_of_kueue_are_read() -> None:
    strategy = {
        "timestamp": "Creation",
        "backoffLimitCount": 3,
        "backoffBaseSeconds": 5,
        "backoffMaxSeconds": 100,
    }
    given = {"timeout": "10m", "blockAdmission": True, "requeuingStrategy": strategy}
    assert read(given) == ReadySettings(
        timeout_seconds=600,
        recovery_seconds=600,
        blocks=True,
        limit=3,
        first_seconds=5,
        most_seconds=100,
    )
    assert not read_settings({"waitForPodsReady": given}).by_eviction


@pytest.mark.parametrize(("given", "seconds"), [("0s", None), ("90s", 90.0), (None, 300.0)])
def test_the_time_to_recover_may_be_none(given: str | None, seconds: float | None) -> None:
    found = read({"timeout": "5m", "recoveryTimeout": given})
    assert found is not None
    assert found.recovery_seconds == seconds


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"timeout": 5}, "queues.waitForPodsReady.timeout"),
        ({"timeout": "-5m"}, "queues.waitForPodsReady.timeout"),
        ({"timeouts": "5m"}, "queues.waitForPodsReady.timeouts"),
        ({"blockAdmission": "yes"}, "queues.waitForPodsReady.blockAdmission"),
        (
            {"requeuingStrategy": {"backoffLimitCount": -1}},
            "queues.waitForPodsReady.requeuingStrategy.backoffLimitCount",
        ),
        (
            {"requeuingStrategy": {"timestamp": "Now"}},
            "queues.waitForPodsReady.requeuingStrategy.timestamp",
        ),
    ],
)
def test_a_mistake_is_named_with_its_field(given: Any, field: str) -> None:
    with pytest.raises(BadInput) as caught:
        read(given)
    assert field in str(caught.value)


def test_the_webhook_is_off_unless_it_is_configured() -> None:
    assert read_settings({"kueue": True}).webhook is None
    assert read_settings({"kueue": True, "webhook": {}}).webhook == WebhookSettings()
    given = {"port": 0, "name": "hook", "namespace": "ours", "certificates": "/tls"}
    assert read_settings({"kueue": True, "webhook": given}).webhook == WebhookSettings(
        port=0, name="hook", namespace="ours", certificates="/tls"
    )


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"port": 70_000}, "queues.webhook.port"),
        ({"port": "9443"}, "queues.webhook.port"),
        ({"name": "A_b"}, "queues.webhook.name"),
        ({"namespace": ""}, "queues.webhook.namespace"),
        ({"certificates": 5}, "queues.webhook.certificates"),
        ({"cert": "x"}, "queues.webhook.cert"),
        ([], "queues.webhook"),
    ],
)
def test_a_mistake_of_the_webhook_is_named_with_its_field(given: Any, field: str) -> None:
    with pytest.raises(BadInput, match=re.escape(field)):
        read_settings({"kueue": True, "webhook": given})


def test_kueue_may_run_in_another_namespace_than_by_default() -> None:
    assert read_settings({"kueue": True}).kueue_namespace == "kueue-system"
    assert read_settings({"kueueNamespace": "queues"}).kueue_namespace == "queues"


@pytest.mark.parametrize("given", ["", "Kueue", "a/b", "a" * 64, None, 5])
def test_a_mistake_in_the_namespace_of_kueue_is_named(given: Any) -> None:
    with pytest.raises(BadInput, match=re.escape("queues.kueueNamespace: ")):
        read_settings({"kueueNamespace": given})


def test_a_webhook_needs_queues() -> None:
    with pytest.raises(BadInput, match=re.escape("queues.webhook: needs queues.kueue: true")):
        read_settings({"webhook": {}})


def test_waits_double_and_end() -> None:
    settings = ReadySettings(first_seconds=60, most_seconds=3600)
    assert [settings.find_backoff(n) for n in (1, 2, 3, 6, 7, 2**31)] == [
        60,
        120,
        240,
        1920,
        3600,
        3600,
    ]
    assert ReadySettings(first_seconds=0).find_backoff(5) == 0


def test_resources_without_quota_need_some_unless_kueues_word_says_otherwise() -> None:
    assert not read_settings({}).ignores_undeclared
    for word, ignores in (("BlockUndeclared", False), ("IgnoreUndeclared", True)):
        given = {"resources": {"quotaCheckStrategy": word}}
        assert read_settings(given).ignores_undeclared is ignores


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"quotaCheckStrategy": "Ignore"}, "queues.resources.quotaCheckStrategy"),
        ({"excludeResourcePrefixes": []}, "queues.resources.excludeResourcePrefixes"),
        ([], "queues.resources"),
    ],
)
def test_a_mistake_in_what_counts_is_named(given: Any, field: str) -> None:
    with pytest.raises(BadInput, match=re.escape(field)):
        read_settings({"resources": given})
