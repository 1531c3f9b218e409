"""``evenkeel demo`` as installed: it comes out as told, and ends with what to type next."""

import importlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from scheduler.demo import operator, patterns
from scheduler.embedded.agents import cards, nodes
from scheduler.simulate.reading import files
from tests.operator import kept_demo

ROOT = Path(__file__).parents[2]
SCRIPT = Path(sys.executable).with_name("evenkeel")


@pytest.mark.parametrize(
    "words", [[str(SCRIPT)], [sys.executable, "-m", "scheduler"]], ids=["script", "module"]
)
def test_the_last_line_works_as_typed(words: list[str]) -> None:
    done = subprocess.run([*words, "demo"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    command = done.stdout.splitlines()[-1].strip()
    assert "simulate" in command
    again = subprocess.run(
        command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert again.returncode == 0, again.stderr
    assert "4 of 4 pods scheduled on 2 nodes" in again.stdout


def test_the_picture_in_the_docs_is_what_the_demo_shows(tmp_path: Path) -> None:
    importlib.import_module("docs.pictures.draw").demo(tmp_path)
    texts = []
    for folder in (ROOT / "docs" / "pictures", tmp_path):
        drawn = (folder / "demo.svg").read_text(encoding="utf-8")
        # It is shown far from here: no path of a machine, no font from the network.
        assert "@font-face" not in drawn
        assert str(ROOT) not in drawn
        rows = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
        # Which card of a node a pod gets may differ.
        texts.append([row for row in rows if "█" not in row and "MiB" not in row])
    assert [texts[0].count(word) for word in ("ok", "DIFFERS")] == [len(patterns.ALL), 0]
    words = "".join(texts[0]).replace("&#160;", " ")
    assert all(pattern.expectation in words for pattern in patterns.ALL)
    numbers = {"1", "2", "3", "4", "&#160;"}
    assert set(texts[0]) - numbers == set(texts[1]) - numbers


def test_the_file_of_nodes_is_what_the_demo_runs_on() -> None:
    written = files.read_objects(str(patterns.NODES), sys.stdin)
    assert [one["metadata"]["name"] for one in written] == ["node-a", "node-b"]
    for one in written:
        there = nodes.make_gpu_node(one["metadata"]["name"])
        assert one["status"]["allocatable"] == there["status"]["allocatable"]
        register = "hami.io/node-nvidia-register"
        assert "".join(one["metadata"]["annotations"][register].split()) == "".join(
            there["metadata"]["annotations"][register].split()
        )


async def _node_and_its_pod(api: aiohttp.ClientSession, node: dict[str, Any], pods: str) -> None:
    """What a user applies: a node, and a pod that only this node suits."""
    name = node["metadata"]["name"]
    labels = {"kubernetes.io/hostname": name}
    node["metadata"]["labels"] = labels
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}
    resources = {"limits": limits} if "annotations" in node["metadata"] else {}
    container = {"name": "c", "image": "i", "resources": resources}
    spec = {"nodeSelector": labels, "containers": [container]}
    for path, body in (
        ("/api/v1/nodes", node),
        (pods, {"metadata": {"name": f"on-{name}"}, "spec": spec}),
    ):
        async with api.post(path, json=body) as answer:
            assert answer.status == 201


async def test_a_kept_cluster_lives_on_when_its_operator_is_killed(
    tmp_path: Path, eventually: Any
) -> None:
    """Pods of the last pattern stay, probes and metrics are where it says, and Ctrl-C leaves nothing."""
    with kept_demo.start(tmp_path) as demo:
        demo.until_ready()
        assert all(len(line) <= 80 for line in demo.printed.splitlines() if "/tmp" not in line)
        config = yaml.safe_load((next(demo.folder.iterdir()) / "kubeconfig").read_text())
        async with aiohttp.ClientSession(config["clusters"][0]["cluster"]["server"]) as api:
            for name, expected in (("probes", "ok"), ("metrics", "evenkeel_")):
                async with api.get(demo.told(name)) as answer:
                    assert expected in await answer.text()
            path = "/api/v1/namespaces/default/pods"

            async def pods() -> dict[str, str]:
                async with api.get(path) as answer:
                    listed = (await answer.json())["items"]
                return {one["metadata"]["name"]: one["status"]["phase"] for one in listed}

            kept = [one["metadata"]["name"] for one in patterns.ALL[-1].read_manifests()]
            assert await pods() == dict.fromkeys(kept, "Running")
            # Nodes of the user's own: without agents of theirs the first would close after 20 s.
            register = nodes.make_gpu_node("own-gpu")["metadata"]["annotations"][cards.REGISTER]
            own = {"name": "own-gpu", "annotations": {cards.REGISTER: register}}
            await _node_and_its_pod(api, {"metadata": own}, path)
            await _node_and_its_pod(api, {"metadata": {"name": "own-plain"}}, path)
            for name in ("on-own-gpu", "on-own-plain"):
                await eventually(pods, lambda found, name=name: found[name] == "Running")
            os.kill(int(demo.told("process")), signal.SIGKILL)
            # It names no scheduler: nothing else places pods here.
            spec = {"containers": [{"name": "c", "image": "i"}]}
            async with api.post(path, json={"metadata": {"name": "late"}, "spec": spec}) as answer:
                assert answer.status == 201
            await eventually(pods, lambda found: found["late"] == "Running", seconds=60)
        assert "the operator was killed by signal 9; it is started again in 1 s" in demo.printed
        demo.until_printed(f"metrics at {demo.told('metrics')}")
        assert demo.end(signal.SIGINT) == 0
        assert demo.left_behind() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_demo_that_is_ended_while_it_starts_leaves_nothing(tmp_path: Path, number: int) -> None:
    with kept_demo.start(tmp_path) as demo:
        # The operator's log is there when its process is about to be.
        while not list(demo.folder.glob("*/evenkeel.log")):
            assert demo.process.poll() is None, demo.printed
        assert demo.end(number) == 130
        assert demo.left_behind() == []
        assert "Traceback" not in demo.printed


async def test_an_operator_that_cannot_start_is_not_started_for_ever(
    tmp_path: Path, eventually: Any
) -> None:
    config, said = tmp_path / "config.yaml", list[str]()
    config.write_text("nonsense: 1")
    log = tmp_path / "log"
    async with operator.run_operator(tmp_path / "none", config, log, said.append) as running:

        async def failed() -> str:
            try:
                running.check()
            except operator.NeverStartedError as error:
                return str(error)
            return ""

        assert "the operator ended with 2: " in await eventually(failed)
    assert said == []
