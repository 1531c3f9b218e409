"""docs/settings.md names every setting that there is, and none that there is not."""

import dataclasses
import json
import re
from collections.abc import Iterator
from typing import Any

import typer.main
import yaml

from scheduler import config
from scheduler.api import names, plugin_parts, values
from scheduler.api.groups.settings import GroupSettings
from scheduler.api.limits import PodLimits
from scheduler.api.metrics_settings import MetricsConfig
from scheduler.api.queues import configuration
from scheduler.cli.app import app
from scheduler.devices import table
from tests.docs import blocks

PAGE = (blocks.ROOT / "docs/settings.md").read_text(encoding="utf-8")
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def section(heading: str) -> str:
    """What stands under a heading, up to the next one of any level."""
    _, found, rest = PAGE.partition(f"\n{heading}\n")
    assert found, heading
    return re.split(r"\n#+ ", rest)[0]


def named(heading: str) -> set[str]:
    """What the first column of the table under a heading names."""
    cells = re.findall(r"^\| (`[^|]+) \|", section(heading), re.MULTILINE)
    return {word for cell in cells for word in re.findall(r"`([^`]+)`", cell)} - {
        "podLimits",
        "metrics",
    }


def test_the_configuration_file() -> None:
    fields = {values.write_camel(field.name) for field in dataclasses.fields(config.Config)}
    rows = re.findall(r"^\| `(\w+)` \|", section("## Configuration file"), re.MULTILINE)
    assert set(rows) == {*fields, "modeWeight"}
    assert named("### Pod limits") == {field.name for field in dataclasses.fields(PodLimits)}
    series = {values.write_camel(field.name) for field in dataclasses.fields(MetricsConfig)}
    assert named("### Metrics") == series
    groups = {values.write_camel(field.name) for field in dataclasses.fields(GroupSettings)}
    assert named("### Groups") == groups
    assert named("### Queues") == set(configuration.FIELDS)


def test_defaults_that_are_told_are_the_defaults() -> None:
    shown = yaml.safe_load((blocks.ROOT / "manifests/base/config.yaml").read_text())
    for heading, given in (
        ("## Configuration file", shown),
        ("### Pod limits", shown["podLimits"]),
        ("### Metrics", shown["metrics"]),
    ):
        told = dict(re.findall(r"^\| `(\w+)` \| `?([^|`]+)`? \|", section(heading), re.MULTILINE))
        for name, value in given.items():
            if not isinstance(value, dict | list):
                printed = str(value).removesuffix(".0").lower() or "none"
                assert told[name] == printed, name


def paths(schema: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Every field of a schema, with the names above it."""
    for name, part in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        yield path
        yield from paths(part, f"{path}.")
        yield from paths(part.get("items", {}), f"{path}.")


def test_the_fields_of_a_policy() -> None:
    crd = yaml.safe_load((blocks.ROOT / "crds/balancepolicies.yaml").read_text())
    (version,) = crd["spec"]["versions"]
    whole = version["schema"]["openAPIV3Schema"]["properties"]
    of_ours = {name: whole[name] for name in ("spec", "status")}
    # Conditions have the form that all of Kubernetes has.
    there = {
        path
        for path in paths({"properties": of_ours})
        if not path.startswith("status.conditions.") and path not in {"spec", "status"}
    }
    text = section("## BalancePolicy")
    words = set(re.findall(r"`([\w.]+)`", text))
    missing = {path for path in there if path not in words and path.rpartition(".")[2] not in words}
    assert missing == set()
    assert {word for word in words if word.startswith(("spec.", "status."))} <= there


def test_the_annotations_and_resources_of_a_pod() -> None:
    assert named("## Annotations of pods") == names.STEERING
    devices = {*table.INNER_RESOURCES, *table.FAMILIES}
    assert devices <= named("## Resources of pods")
    known = {value for value in vars(names).values() if isinstance(value, str)}
    patterns = set(plugin_parts.RESOURCES)
    assert named("## Resources of pods") <= known | devices | patterns


def leaves(schema: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """The values of the chart that have none below them."""
    for name, part in schema["properties"].items():
        # Kubernetes' own fields, and the configuration file, count as one value.
        if "properties" in part and name not in {"resources", "config"}:
            yield from leaves(part, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def test_the_values_of_the_chart() -> None:
    schema = json.loads((blocks.ROOT / "manifests/chart/values.schema.json").read_text())
    # What helm gives to charts within charts.
    assert named("## Chart") == {*leaves(schema)} - {"global"}


def test_the_flags_of_the_commands() -> None:
    headings = re.findall(r"^### evenkeel (\w+)$", PAGE, re.MULTILINE)
    assert set(headings) == COMMANDS.keys()
    for command in headings:
        flags = {
            flag
            for parameter in COMMANDS[command].params
            if parameter.param_type_name == "option"
            for flag in parameter.opts
        }
        assert named(f"### evenkeel {command}") == flags, command


def test_the_exit_codes_of_the_commands() -> None:
    assert named("### Exit codes") == COMMANDS.keys()


def test_the_file_of_kube_schedulers_that_is_shown_is_read() -> None:
    (shown,) = re.findall(r"```yaml\n([^`]*kind: KubeSchedulerConfiguration[^`]*)```", PAGE)
    found = config.parse_config(yaml.safe_load(shown))
    assert found.scheduler_names == ("default-scheduler", "pack-gpus")
