"""Commands read HAMi's device configuration from files, where a setting names the ConfigMap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from scheduler.cli.app import app
from tests import make
from tests.unit.test_device_maps import DEVICES, NVIDIA

FACTOR = {"nvidia": {**NVIDIA, "memoryFactor": 1000}}


def write_files(folder: Path, config_map: dict[str, Any]) -> tuple[str, str]:
    """Objects, and the configuration that names the ConfigMap."""
    namespace, _, name = DEVICES.partition("/")
    told = {"apiVersion": "v1", "kind": "ConfigMap", "data": config_map}
    told["metadata"] = {"namespace": namespace, "name": name}
    pod = make.pod(name="p", gpu=1, gpumem=3)
    objects = [told, make.raw(make.hami_node(name="n", cards=1)), make.raw(pod)]
    for one, kind in zip(objects[1:], ("Node", "Pod"), strict=True):
        one |= {"apiVersion": "v1", "kind": kind}
    files = folder / "objects.yaml", folder / "config.yaml"
    files[0].write_text(yaml.safe_dump_all(objects))
    files[1].write_text(yaml.safe_dump({"hamiConfigMap": DEVICES}))
    return str(files[0]), str(files[1])


def run(*args: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, [*args])
    return found.exit_code, found.output


def test_simulate_and_explain_go_by_the_config_map(tmp_path: Path) -> None:
    objects, config = write_files(tmp_path, {"device-config.yaml": yaml.safe_dump(FACTOR)})
    code, text = run("simulate", "-f", objects, "--config", config, "-o", "json")
    assert code == 0, text
    assert '"memoryMiB": 3000' in text
    # Without the setting nobody knows which ConfigMap is meant.
    assert '"memoryMiB": 3,' in run("simulate", "-f", objects, "-o", "json")[1]
    code, text = run("explain", "pod", "p", "-f", objects, "--config", config)
    assert code == 0, text
    assert "3000" in text or "3,000" in text


def test_audit_goes_by_the_config_map(tmp_path: Path) -> None:
    objects, config = write_files(tmp_path, {"device-config.yaml": yaml.safe_dump(FACTOR)})
    code, text = run("audit", "-f", objects, "--config", config, "-o", "json")
    assert code == 0, text
    assert '"passedOver": {}' in text


def test_a_mistake_in_the_config_map_is_a_mistake_of_the_objects(tmp_path: Path) -> None:
    objects, config = write_files(tmp_path, {"device-config.yaml": "nvidia: {memoryFactor: -1}"})
    for command in ("simulate", "audit"):
        code, text = run(command, "-f", objects, "--config", config)
        assert code == 3, text
        assert "data[device-config.yaml].nvidia.memoryFactor" in text.replace("\n", "")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"hamiConfigMap": "a"}, "hamiConfigMap"),
        ({"hamiConfigMap": 5}, "hamiConfigMap"),
        ({"hamiPluginConfigMap": "A/b"}, "hamiPluginConfigMap"),
        ({"hamiConfigMap": "a/b", "deviceWebhook": {"nvidia": {}}}, "deviceWebhook.nvidia"),
    ],
)
def test_a_setting_that_names_no_object_is_refused(
    given: dict[str, Any], field: str, tmp_path: Path
) -> None:
    objects, config = write_files(tmp_path, {})
    Path(config).write_text(yaml.safe_dump(given))
    code, text = run("simulate", "-f", objects, "--config", config)
    assert code == 2, text
    assert field in text
