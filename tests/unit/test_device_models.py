"""A model has one printed name, however nodes write it, and every output prints that one."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from scheduler import cli
from scheduler.api import names
from scheduler.devices import models
from scheduler.documents import writing
from tests import make
from tests.unit.test_explain import explain
from tests.unit.test_simulate_what_if import node, pod

MAKERS = models.list_makers([names.GPU, names.AMD_GPU, "gpu.intel.com/i915"])
REPORTED, LABEL, PRINTED = "NVIDIA-NVIDIA H100 80GB HBM3", "NVIDIA-H100-80GB-HBM3", "H100-80GB-HBM3"


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        (REPORTED, PRINTED),
        (LABEL, PRINTED),
        ("NVIDIA H100 80GB HBM3", PRINTED),
        ("NVIDIA-Tesla T4", "Tesla-T4"),
        ("Tesla-T4", "Tesla-T4"),
        ("nvidia_A10", "A10"),
        ("AMD_Instinct_MI300X_OAM", "Instinct-MI300X-OAM"),
        ("NVIDIA", "NVIDIA"),
        ("NVIDIA-", "NVIDIA"),
        ("Intel Data Center GPU Max 1550", "Data-Center-GPU-Max-1550"),
        ("Nvidiaish-X", "Nvidiaish-X"),
        ("", ""),
        # GPU feature discovery's suffixes, for GPUs that are shared and for parts of GPUs.
        ("Tesla-T4-SHARED", "Tesla-T4"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "A100-SXM4-40GB-MIG-1g.5gb"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED", "A100-SXM4-40GB-MIG-1g.5gb"),
        ("SHARED", "SHARED"),
    ],
)
def test_a_model_has_one_printed_name(written: str, printed: str) -> None:
    assert models.print_name(written, MAKERS) == printed


def _fleet() -> list[dict[str, Any]]:
    cards = [make.card(model=REPORTED, mib=80 * 1024)]
    hami = make.raw(make.hami_node(name="h", cards=cards)) | {"kind": "Node", "apiVersion": "v1"}
    return [
        hami,
        node("w", gpus=1, labels={names.GPU_PRODUCT: LABEL}),
        pod("p", gpu=2),
        pod("q", gpu=1),
    ]


@pytest.mark.parametrize(
    ("arguments", "n"),
    [
        (("audit", "--nodes"), 2),
        (("audit",), 1),
        (("audit", "-o", "html"), 1),
        (("audit", "--by", "namespace"), 1),
        (("explain", "node", "h"), 1),
        (("explain", "pod", "p"), 1),
    ],
)
def test_every_command_prints_the_one_name(arguments: tuple[str, ...], n: int) -> None:
    stdin = writing.dump_all(_fleet())
    result = CliRunner().invoke(cli.app, [*arguments, "-f", "-"], input=stdin)
    assert result.exit_code == 0, result.output
    assert result.stdout.count(PRINTED) >= n
    assert "NVIDIA" not in result.stdout.upper().replace("NVIDIA.COM", "")


def test_json_has_the_one_name_too() -> None:
    found = json.loads(explain("node", "h", "-o", "json", objects=_fleet()).stdout)
    assert [card["model"] for card in found["cards"]] == [PRINTED]


def test_a_message_about_annotations_also_quotes_what_nodes_report() -> None:
    """It is what ``use-gputype`` is compared with."""
    wish = pod("picky", gpu=1, annotations={names.USE_TYPE: "A100"})
    result = explain("pod", "picky", objects=[*_fleet()[:1], wish])
    assert f"there are {PRINTED} (reported as {REPORTED})" in " ".join(result.stdout.split())
