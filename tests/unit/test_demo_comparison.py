"""The demo's fifth picture: what it shows is counted, and is no lucky order of the pods."""

import io
import random

import pytest
from rich.console import Console

from scheduler.api.placement import Mode
from scheduler.demo import beside, comparison
from scheduler.demo.comparison import Side

_ORDERS = 4


@pytest.fixture(scope="module")
def shown() -> list[Side]:
    return comparison.compare_modes(comparison.make_pods())


def test_eight_gpu_jobs_fit_after_keel_alone_and_other_pods_fit_alike(shown: list[Side]) -> None:
    keel, least = shown
    assert (keel.mode, least.mode) == (Mode.KEEL, Mode.LEAST_ALLOCATED)
    assert (keel.more["train"], least.more["train"]) == (2, 0)
    for kind, n in keel.more.items():
        assert n >= least.more[kind], kind


@pytest.mark.parametrize("seed", range(_ORDERS))
def test_other_orders_of_the_pods_come_out_alike(shown: list[Side], seed: int) -> None:
    pods = comparison.make_pods()
    random.Random(seed).shuffle(pods)
    for side, there in zip(comparison.compare_modes(pods), shown, strict=True):
        assert side.more["train"] == there.more["train"]
        for kind, n in there.more.items():
            assert abs(side.more[kind] - n) <= 3, kind


def test_the_picture_says_what_was_compared_and_fits_eighty_columns(shown: list[Side]) -> None:
    console = Console(file=io.StringIO(), width=80)
    console.print(beside.draw_sides(shown))
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    assert max(map(len, printed.splitlines())) <= 80
    words = " ".join(printed.split())
    assert "The same 26 pods (12 chat, 6 cache, 6 vision, 2 tune) in the same order" in words
    assert "4 nodes × 8 GPUs of 40,960 MiB" in words
    # Cards without a pod: with keel two whole nodes, with the other mode some on every node.
    keel, least = ("".join(line[at : at + 38] for line in printed.splitlines()) for at in (0, 40))
    assert keel.count("·· ·· ·· ·· ·· ·· ·· ··") == 2
    assert "·· ·· ·· ·· ·· ·· ·· ··" not in least


def test_pods_without_a_place_are_no_comparison() -> None:
    pods = comparison.make_pods()
    for pod in pods:
        pod["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": "9"}
    with pytest.raises(RuntimeError, match="placed 0 of 26 pods"):
        comparison.compare_modes(pods)
