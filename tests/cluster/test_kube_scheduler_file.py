"""A file in kube-scheduler's form means here what it means to kube-scheduler 1.37.1, which tells what it made of one."""

import itertools
import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler import config
from scheduler.api import kube_plugins
from scheduler.api.kubescheduler import points
from scheduler.errors import BadInput
from scheduler.plugins import table
from tests.controlplane import build

Json = dict[str, Any]
pytestmark = pytest.mark.usefixtures("peers")
SEEDS = range(60)
# What a run says of the plugins that it starts with, before it looks for an API server.
SAID = '"the scheduler starts to work with those plugins" Plugins='
KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:1"}}],
    "contexts": [{"name": "none", "context": {"cluster": "none"}}],
    "current-context": "none",
}


def started(folder: Path, profile: Json) -> Json | None:
    """Point by point the plugins that kube-scheduler starts with, and their weights; None where it does not start."""
    kubeconfig, file = folder / "kubeconfig", folder / "config.yaml"
    kubeconfig.write_text(json.dumps(KUBECONFIG))
    body = whole(profile) | {"clientConnection": {"kubeconfig": str(kubeconfig)}}
    file.write_text(yaml.safe_dump(body))
    program = build.ensure("kube-scheduler")["kube-scheduler"]
    flags = [f"--config={file}", f"--write-config-to={folder / 'written.yaml'}", "-v=2"]
    ended = subprocess.run([program, *flags], capture_output=True, text=True, check=False)
    said = [line for line in ended.stderr.splitlines() if SAID in line]
    if ended.returncode or not said:
        return None
    found: Json = json.loads(said[0].partition(SAID)[2])
    return {
        point[0].lower() + point[1:]: {one["Name"]: one["Weight"] for one in there["Enabled"] or ()}
        for point, there in found.items()
    }


def whole(profile: Json) -> Json:
    head = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
    }
    return head | {"profiles": [profile]}


def random_plugins(seed: int) -> Json:
    """Some points with some plugins on or off, not all of which can be."""
    rng = random.Random(seed)
    names = [*points.PLUGINS]
    found: Json = {}
    where = rng.sample(
        ("multiPoint", "filter", "preFilter", "score", "preScore"), rng.randint(1, 3)
    )
    # A plugin that is on only at the last point gets no arguments, and kube-scheduler does not start.
    for point in (*where, *rng.sample(points.POINTS[:-1], 1)):
        able = [one for one in names if point == "multiPoint" or point in points.PLUGINS[one]]
        if rng.random() < 0.05:
            able = names
        enabled = [
            {"name": one} | ({"weight": rng.randint(0, 9)} if rng.random() < 0.6 else {})
            for one in rng.sample(able, min(len(able), rng.randint(0, 3)))
        ]
        disabled = [{"name": one} for one in rng.sample(able, min(len(able), rng.randint(0, 3)))]
        if rng.random() < 0.15:
            disabled = [{"name": "*"}]
        found[point] = {"enabled": enabled, "disabled": disabled}
    return found


def test_plugins_are_merged_with_the_defaults_as_kube_scheduler_does(tmp_path: Path) -> None:
    own = dict(itertools.chain(*_own_weights()))
    n_alike = n_refused = 0
    for seed in SEEDS:
        profile = {"schedulerName": "one", "plugins": random_plugins(seed)}
        theirs = started(tmp_path, profile)
        try:
            ours = points.read_points(profile["plugins"], "plugins")
        except BadInput:
            ours = None
        if theirs is None:
            n_refused += 1
            with pytest.raises(BadInput):
                config.parse_config(whole(profile))
            continue
        assert ours is not None, profile
        n_alike += 1
        assert {point: set(there) for point, there in ours.at.items()} == {
            point: set(theirs.get(point, ())) for point in points.POINTS
        }, profile
        known = own.keys() & theirs["score"].keys()
        given = own | dict(ours.weights)
        assert {one: given[one] for one in known} == {one: theirs["score"][one] for one in known}
    assert n_alike > len(SEEDS) // 2
    assert n_refused > 2


def test_the_own_weights_of_scores_are_kube_schedulers(tmp_path: Path) -> None:
    theirs = started(tmp_path, {"schedulerName": "one"})
    assert theirs is not None
    own = dict(itertools.chain(*_own_weights()))
    assert {one: theirs["score"][one] for one in own} == own
    # Claims are refused, and so not scored.
    assert theirs["score"].keys() - own.keys() <= {"DynamicResources", "VolumeBinding"}


def _own_weights() -> list[list[tuple[str, int]]]:
    weights = table.get_weights(kube_plugins.DEFAULT)
    return [
        [(name, w) for (name, _), w in zip(table.SCORES, weights.of_nodes, strict=True)],
        [(name, w) for (name, _), w in zip(table.DOMAIN_SCORES, weights.of_domains, strict=True)],
        [(kube_plugins.FIT, 1), (kube_plugins.BALANCED, 1)],
    ]
