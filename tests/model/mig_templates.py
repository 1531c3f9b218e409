"""Nodes with cards that HAMi's plugin up to 2.9 cuts by the tables of HAMi's device configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from scheduler.api.hami_config import reading
from scheduler.api.hami_config.maps import DeviceSettings
from scheduler.api.hami_config.sections import Geometries
from scheduler.devices import table
from scheduler.devices.table import Devices
from scheduler.state.cluster import Cluster
from tests import make

Json = dict[str, Any]
GOLDEN: Json = yaml.safe_load(
    (Path(__file__).parents[1] / "data/hami/mig-templates.yaml").read_text(encoding="utf-8")
)
TABLES: Json = GOLDEN["tables"]
A100 = "A100-40GB"


def make_settings(model: str = A100, **tables: Any) -> DeviceSettings:
    """Make the settings of a ConfigMap with the table of a model, or with other ``geometries``."""
    geometries = tables.get("geometries", TABLES[model]["geometries"])
    known = [{"models": [model], "allowedGeometries": geometries}]
    text = yaml.safe_dump({"nvidia": {"knownMigGeometries": known}})
    found: tuple[Geometries, ...] = reading.read_config(text).nvidia.geometries
    plain = DeviceSettings()
    return plain._replace(
        config=plain.config._replace(nvidia=plain.config.nvidia._replace(geometries=found))
    )


def make_card(uuid: str = "GPU-0", index: int = 0, model: str = A100) -> Json:
    """Make a card as the plugin registers it: nothing says what it can be cut into."""
    return make.card(
        uuid=uuid, index=index, mib=TABLES[model]["mib"], model=f"NVIDIA-NVIDIA {model}", mode="mig"
    )


def make_cluster(n_cards: int = 1, model: str = A100, **tables: Any) -> Cluster:
    """Make a cluster of one node."""
    drivers = table.list_drivers("gpu=on", make_settings(model, **tables))
    cluster = Cluster(devices=Devices(drivers))
    cards = [make_card(f"GPU-{i}", i, model) for i in range(n_cards)]
    cluster.see_node(make.hami_node(name="n", cards=cards, cpu=640))
    return cluster
