"""Pictures of a replay are valid files that show what they should."""

import dataclasses
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from matplotlib import image

from scheduler.errors import BadInput
from scheduler.replay import fan_out
from scheduler.replay.experiment import RunOptions, Trace, TraceNode, TracePod
from scheduler.replay.fan_out import Finished, Job
from scheduler.replay.plots import look, picture
from tests.unit import replay_engine

IOPS = "example.com/iops"
TRACES = {"default": replay_engine.small_trace(), "other": replay_engine.small_trace()}


def finished(
    experiment: str = "fill",
    modes: tuple[str, ...] = ("first-fit", "random"),
    seeds: tuple[int, ...] = (1, 2),
    variants: tuple[str, ...] = ("default",),
    *,
    is_measured: bool = True,
) -> list[Finished]:
    load = 3.0 if experiment == "fill" else 1.0
    jobs = [
        Job(variant, experiment, load, 150, RunOptions(mode, "seen", False, seed, is_measured))
        for variant in variants
        for mode in modes
        for seed in seeds
    ]
    return fan_out.run_jobs(jobs, TRACES, engine=replay_engine.first_fit)


def words(path: Path) -> str:
    """All text of an SVG: matplotlib draws letters as shapes and keeps the words in comments."""
    parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))
    root = ET.parse(path, parser).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return "\n".join(one.text or "" for one in root.iter() if callable(one.tag))


def test_an_svg_names_modes_axes_and_models(tmp_path: Path) -> None:
    path = tmp_path / "picture.svg"
    picture.draw_picture(finished(), TRACES, path)
    said = words(path)
    for word in (
        "first-fit", "random", "Allocated, % of all GPUs: fill of default", "Fragments, % of all",
        "arrived, % of all GPUs", "mean of 2 seeds, band: all of them", "A (2)", "B (1)", "CPU %",
        "random: the cluster at the end", "used, % of the GPU",
    ):  # fmt: skip
        assert word in said


def test_a_png_has_content_in_colour(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    picture.draw_picture(finished(seeds=(1,)), TRACES, path)
    pixels = image.imread(path)[:, :, :3]
    height, width, _ = pixels.shape
    assert (width, height) == (1800, 1320)
    is_ink = (pixels < 0.99).any(axis=2)
    assert 0.1 < is_ink.mean() < 0.9
    blue = np.array([0x00, 0x72, 0xB2]) / 255
    assert (np.abs(pixels - blue).max(axis=2) < 0.01).sum() > 1000


def test_a_stream_is_drawn_over_time_and_without_fragments_when_none_were_measured(
    tmp_path: Path,
) -> None:
    path = tmp_path / "stream.svg"
    picture.draw_picture(finished("churn", seeds=(1,), is_measured=False), TRACES, path)
    said = words(path)
    assert "time, mean lifetimes" in said
    assert "Fragments" not in said
    assert "band" not in said


def plain() -> Trace:
    """Three nodes of two kinds, no GPU, and pods that came over two hours."""
    nodes = [TraceNode(f"n{i}", 8000, 16_384, 0, "", ((IOPS, 200),) if i else ()) for i in range(3)]
    pods = [
        TracePod(f"p{i}", 2000, 1024, 0, 0, (), extended=((IOPS, 40),) if i % 2 else (), arrival=t, departure=t + 900)
        for i, t in enumerate(range(0, 12_000, 100))
    ]  # fmt: skip
    return Trace("plain", tuple(nodes), tuple(pods), is_recorded=True)


@pytest.mark.parametrize(
    ("experiment", "expected"),
    [
        ("recorded", {"Allocated, % of all CPU: recorded of default", "Nodes in use, % of all: recorded", "time, hours from the first arrival"}),
        ("fill", {"Allocated, % of all CPU: fill of default", "arrived, % of all CPU"}),
        ("churn", {"Allocated, % of all CPU: churn of default", "time, mean lifetimes"}),
    ],
)  # fmt: skip
def test_without_gpus_lines_and_nodes_are_of_the_resources_there_are(
    tmp_path: Path, experiment: str, expected: set[str]
) -> None:
    load = None if experiment == "recorded" else 1.1
    traces = {"default": plain()}
    jobs = [
        Job("default", experiment, load, 200, RunOptions(mode, "seen", False, 1, True))
        for mode in ("keel", "least-allocated")
    ]
    path = tmp_path / "plain.svg"
    picture.draw_picture(fan_out.run_jobs(jobs, traces), traces, path)
    said = words(path)
    for word in (*expected, "keel: the cluster at the end", "% of cpu allocated", "memory", IOPS):
        assert word in said
    assert "Fragments" not in said
    assert "GPU" not in said


def test_recorded_gpus_have_their_fragments_too(tmp_path: Path) -> None:
    trace = replay_engine.small_trace()
    pods = tuple(
        dataclasses.replace(pod, arrival=float(i), departure=i + 9.0)
        for i, pod in enumerate(trace.pods)
    )
    traces = {"default": dataclasses.replace(trace, pods=pods, is_recorded=True)}
    job = Job("default", "recorded", None, 1, RunOptions("keel", "seen", False, 1, True))
    path = tmp_path / "recorded.svg"
    picture.draw_picture(fan_out.run_jobs([job], traces), traces, path)
    said = words(path)
    for word in ("Allocated, % of all GPUs", "Nodes in use", "Fragments", "time, seconds from"):
        assert word in said


def test_every_mode_there_is_and_every_variant_fit_in_one_picture(tmp_path: Path) -> None:
    path = tmp_path / "all.svg"
    modes = tuple(f"mode-{i}" for i in range(13))
    runs = finished("churn", modes, (1,), ("default", "other"))
    picture.draw_picture(runs, TRACES, path)
    said = words(path)
    assert "churn of other" in said
    assert [said.count(f"{mode}: the cluster at the end") for mode in modes] == [1] * 13


def test_thirteen_lines_all_look_different() -> None:
    looks = {tuple(look.make_look(i).values()) for i in range(13)}
    assert len(looks) == 13


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"--plot: .*gone"):
        picture.draw_picture(finished(seeds=(1,)), TRACES, tmp_path / "gone/picture.png")


def test_without_matplotlib_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BadInput, match=r"needs the extra plot: pip install .*\[plot\]"):
        picture.draw_picture([], TRACES, tmp_path / "picture.svg")
