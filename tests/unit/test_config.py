"""The configuration file: every default shown, every mistake named."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scheduler import config
from scheduler.api import values
from scheduler.api.metrics_settings import HamiMetrics, MetricsConfig
from scheduler.api.placement import Mode, Placement
from scheduler.config import Config, Profile
from scheduler.errors import BadInput

ROOT = Path(__file__).parents[2]


def test_the_shipped_file_shows_every_setting_with_its_default() -> None:
    shipped = ROOT / "manifests/base/config.yaml"
    assert config.load_config(shipped) == Config()
    text = shipped.read_text(encoding="utf-8")
    settings = [*map(values.write_camel, Config.__slots__), "modeWeight"]
    assert all(f"\n{name}:" in text for name in settings)


def test_no_file_and_an_empty_file_are_the_defaults(tmp_path: Path) -> None:
    empty = tmp_path / "empty.yaml"
    empty.write_text("# nothing\n")
    assert config.load_config(None) == config.load_config(empty) == Config()


def test_what_is_given_stands_and_the_rest_is_default() -> None:
    given = {
        "schedulerName": "mine",
        "backoffSeconds": 2,
        "modeWeight": 100,
        "hamiNodeLabel": "",
        "roleLabel": "hami.io/scheduler-role",
        "metrics": {"perCard": False, "hami": "both"},
        "placement": {"scoring": {"mode": "lambda-g", "weights": {"cpu": 3}}, "nodePolicy": "spread"},
    }  # fmt: skip
    placement = Placement(
        mode=Mode.LAMBDA_G, weights=(3, 0, 0, 0, 0, 0), node_policy="spread", mode_weight=100
    )
    wanted = replace(
        Config(),
        scheduler_name="mine",
        backoff_seconds=2.0,
        placement=placement,
        hami_node_label="",
        role_label="hami.io/scheduler-role",
        metrics=MetricsConfig(per_node=True, per_card=False, hami=HamiMetrics.BOTH),
    )
    assert config.parse_config(given) == wanted


def test_a_profile_has_what_it_says_and_the_rest_of_the_first() -> None:
    """``placement`` is said as a whole: a mode of the first profile does not shine through."""
    given = {
        "modeWeight": 7,
        "placement": {"gpuPolicy": "spread"},
        "profiles": [
            {"schedulerName": "default-scheduler"},
            {"schedulerName": "pack", "placement": {"nodePolicy": "binpack"}},
            {"schedulerName": "light", "modeWeight": 1},
        ],
    }
    found = config.parse_config(given)
    assert found.scheduler_names == ("evenkeel", "default-scheduler", "pack", "light")
    assert [found.profile(name) for name in (*found.scheduler_names, "a stranger")] == [
        Profile("evenkeel", Placement(gpu_policy="spread", mode_weight=7)),
        Profile("default-scheduler", Placement(gpu_policy="spread", mode_weight=7)),
        Profile("pack", Placement(node_policy="binpack", mode_weight=7)),
        Profile("light", Placement(gpu_policy="spread", mode_weight=1)),
        Profile("evenkeel", Placement(gpu_policy="spread", mode_weight=7)),
    ]


def test_a_profile_may_say_an_objective_which_is_one_of_keel() -> None:
    given = {
        "placement": {"scoring": {"mode": "fgd"}},
        "profiles": [{"schedulerName": "pack", "placement": {"scoring": {"objective": "pack"}}}],
    }
    found = config.parse_config(given)
    assert found.placement == Placement(mode=Mode.FGD)
    assert found.profile("pack").placement == Placement(mode=Mode.KEEL, objective="pack")


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ([], "file"),
        ("text", "file"),
        ({"backoff": 1}, "backoff"),
        ({7: 1}, "7"),
        ({"schedulerName": ""}, "schedulerName"),
        ({"schedulerName": 5}, "schedulerName"),
        ({"modeWeight": 0}, "modeWeight"),
        ({"modeWeight": 1.5}, "modeWeight"),
        ({"modeWeight": True}, "modeWeight"),
        ({"modeWeight": 101}, "modeWeight"),
        ({"hamiNodeLabel": "a=b=c"}, "hamiNodeLabel"),
        ({"hamiNodeLabel": "a b"}, "hamiNodeLabel"),
        ({"hamiNodeLabel": 5}, "hamiNodeLabel"),
        ({"hamiSchedulerNodes": "a in b"}, "hamiSchedulerNodes"),
        ({"hamiSchedulerNodes": "a=b c=d"}, "hamiSchedulerNodes"),
        ({"hamiSchedulerNodes": ["a=b"]}, "hamiSchedulerNodes"),
        ({"slicePods": "64"}, "slicePods"),
        ({"backoffSeconds": -1}, "backoffSeconds"),
        ({"ageingPerHour": -1}, "ageingPerHour"),
        ({"ageingPerHour": True}, "ageingPerHour"),
        ({"groups": {"promisedPercent": 101}}, "groups.promisedPercent"),
        ({"groups": {"promisedPercent": "all"}}, "groups.promisedPercent"),
        ({"groups": {"kueueBalancedPlacement": "yes"}}, "groups.kueueBalancedPlacement"),
        ({"backoffSeconds": float("nan")}, "backoffSeconds"),
        ({"backoffMaxSeconds": float("inf")}, "backoffMaxSeconds"),
        ({"lockTimeoutSeconds": None}, "lockTimeoutSeconds"),
        ({"placement": []}, "placement"),
        ({"schedulerName": "a,spec.nodeName=b"}, "schedulerName"),
        ({"profiles": {}}, "profiles"),
        ({"profiles": ["a"]}, "profiles[0]"),
        ({"profiles": [{}]}, "profiles[0].schedulerName"),
        ({"profiles": [{"schedulerName": ""}]}, "profiles[0].schedulerName"),
        ({"profiles": [{"schedulerName": "evenkeel"}]}, "profiles[0].schedulerName"),
        (
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
            "profiles[1].schedulerName",
        ),
        ({"profiles": [{"schedulerName": "a", "slicePods": 1}]}, "profiles[0].slicePods"),
        ({"profiles": [{"schedulerName": "a", "modeWeight": 0}]}, "profiles[0].modeWeight"),
        (
            {"profiles": [{"schedulerName": "a", "placement": {"mode": 1}}]},
            "profiles[0].placement.mode",
        ),
        ({"placement": {"priority": 1}}, "placement.priority"),
        ({"placement": {"gpuPolicy": "fast"}}, "placement.gpuPolicy"),
        ({"placement": {"scoring": {"mode": "kiel"}}}, "placement.scoring.mode"),
        ({"placement": {"scoring": {"objective": "fill"}}}, "placement.scoring.objective"),
        (
            {"placement": {"scoring": {"mode": "fgd", "objective": "pack"}}},
            "placement.scoring.objective",
        ),
        ({"metrics": []}, "metrics"),
        ({"metrics": {"perCards": True}}, "metrics.perCards"),
        ({"metrics": {"perCard": 1}}, "metrics.perCard"),
        ({"metrics": {"hamiPerPod": 1}}, "metrics.hamiPerPod"),
        ({"metrics": {"hami": "on"}}, "metrics.hami"),
        ({"roleLabel": "a=b"}, "roleLabel"),
        ({"roleLabel": True}, "roleLabel"),
        ({"metrics": {"hami": ["both"]}}, "metrics.hami"),
    ],
)
def test_a_setting_that_is_not_allowed_is_refused_by_name(raw: Any, field: str) -> None:
    with pytest.raises(BadInput) as refused:
        config.parse_config(raw)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("content", "field"), [(b"a: [", "YAML"), (b"\xff\xfe\x00", "file"), (b"a: .nan", "YAML")]
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes, field: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    with pytest.raises(BadInput) as refused:
        config.load_config(path)
    assert refused.value.field == field
    with pytest.raises(BadInput):
        config.load_config(tmp_path / "absent.yaml")
