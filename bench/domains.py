"""How many large gangs still fit in a cluster that has run for a while, by who chose the domains of the gangs before.

A cluster of blocks of NVLink domains, hardly two of one size, is filled by a stream of single pods and gangs and then kept at
a load: when something comes that would be too much, running jobs leave, drawn by lot. A gang of up to 64 GPUs needs one NVLink
domain, a larger one needs one block; all nodes have 8 GPUs. It is counted how many gangs of 64 GPUs would still fit
in NVLink domains, and how many of 256 and of 512 in blocks. Everybody gets the same stream.

``keel`` are Kubernetes' PodGroups in the mode ``keel``. ``kueue`` and ``kai`` are groups in the words of these systems, which are
placed by their rules. ``most-allocated`` is kube-scheduler's choice of a placement with its strategy MostAllocated. Once
the single pods are placed alike, by the mode ``keel``, so that only the choice of domains differs; and once each in its own way:
Kueue puts them on the node with the least room, KAI and kube-scheduler on the fullest node.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from bench.floors import Floor
from scheduler import config
from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.api.groups.objects import KaiPodGroup, KaiTopology, KubePodGroup, KueueTopology
from scheduler.config import Config, Profile
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine

Json = dict[str, Any]
_GPUS = 8
_LOADS, _QUICK_LOADS = (30, 50, 70, 85, 95), (60,)
# The rules were chosen on other seeds.
_SEEDS, _QUICK_SEEDS, _FIRST_SEED = 6, 1, 8000
_JOBS, _QUICK_JOBS, _MEASURES = 600, 60, 10
_BLOCKS, _QUICK_BLOCKS = 12, 4
_BLOCK, _CLIQUE, _HOST = "topology.kubernetes.io/block", "nvidia.com/gpu.clique", names.HOSTNAME
# GPUs of a single pod, and pods of a gang with 8 GPUs each; each with how often it comes.
_SINGLES = {1: 0.4, 2: 0.2, 4: 0.2, 8: 0.2}
_GANGS = {2: 0.3, 4: 0.3, 8: 0.2, 16: 0.12, 32: 0.08}
_SINGLE_SHARE, _CLIQUE_MOST = 0.7, 8
# The gangs that are counted: how many nodes, and whether these must be in one NVLink domain or in one block.
_WANTED = {"64": (8, _CLIQUE), "256": (32, _BLOCK), "512": (64, _BLOCK)}
_KUBE = "default-scheduler"

FLOORS = (
    Floor("alike.*.gain.64", at_least=1.0),
    Floor("alike.*.gain.256", at_least=1.0),
)


class Nodes(NamedTuple):
    """The nodes of one cluster: their names, and the block and the NVLink domain of each."""

    names: tuple[str, ...]
    domain: dict[str, np.ndarray[Any, np.dtype[np.int64]]]


class Job(NamedTuple):
    """A single pod, or a gang of pods that needs one domain of a level."""

    name: str
    pods: int
    gpus: int
    level: str


_Group = KubePodGroup | KaiPodGroup | None
_Write = Callable[[Job], tuple[_Group, list[wire.Pod]]]


@dataclass(frozen=True)
class Contestant:
    """Who places: a configuration, how gangs and single pods are written, and the object that describes the levels."""

    settings: Config
    write_gang: _Write
    write_single: _Write
    topology: KueueTopology | KaiTopology | None = None


def run(quick: bool) -> dict[str, Any]:
    loads = _QUICK_LOADS if quick else _LOADS
    seeds = range(_FIRST_SEED, _FIRST_SEED + (_QUICK_SEEDS if quick else _SEEDS))
    n_jobs, n_blocks = (_QUICK_JOBS, _QUICK_BLOCKS) if quick else (_JOBS, _BLOCKS)
    found: dict[str, Any] = {}
    for way, contestants in list_ways().items():
        found[way] = {}
        for load in loads:
            tallies: dict[str, list[Tally]] = {}
            for name, one in contestants.items():
                print(f"domains: {way}, {load} %, {name}", file=sys.stderr)
                tallies[name] = [play(seed, load, one, n_jobs, n_blocks) for seed in seeds]
            found[way][str(load)] = _sum_up(tallies)
    return found


@dataclass
class Tally:
    """What one contestant got on one stream: for each size of gangs the counts at each measure; and GPUs refused."""

    fits: dict[str, list[int]] = field(default_factory=lambda: {size: [] for size in _WANTED})
    refused: int = 0
    asked: int = 0


def _sum_up(tallies: dict[str, list[Tally]]) -> Json:
    """Means over seeds, with standard errors, and how many times as many gangs fit with keel as with the best of the others."""
    found: Json = {}
    for name, there in tallies.items():
        found[name] = {
            "refused_percent": round(
                100 * sum(one.refused for one in there) / sum(one.asked for one in there), 2
            ),
        }
        for size in _WANTED:
            means = [statistics.mean(one.fits[size]) for one in there]
            error = statistics.stdev(means) / len(means) ** 0.5 if len(means) > 1 else 0.0
            found[name][size] = {"mean": round(statistics.mean(means), 2), "error": round(error, 2)}
    found["gain"] = {}
    for size in _WANTED:
        others = max(found[name][size]["mean"] for name in tallies if name != "keel")
        keel = found["keel"][size]["mean"]
        # Where none fits with anybody, nobody is ahead.
        found["gain"][size] = round(keel / others, 3) if others else 1.0
    return found


def draw_nodes(seed: int, n_blocks: int) -> Nodes:
    """Draw a cluster: blocks of 4 to 8 NVLink domains of 8 to 18 nodes."""
    rng = np.random.default_rng(seed)
    block: list[int] = []
    clique: list[int] = []
    for number in range(n_blocks):
        for size in rng.integers(8, 19, int(rng.integers(4, 9))).tolist():
            clique += [max(clique, default=-1) + 1] * size
            block += [number] * size
    # Names say nothing of places, as those of rented machines do not.
    order = rng.permutation(len(block))
    domain = {_BLOCK: np.array(block), _CLIQUE: np.array(clique)}
    return Nodes(tuple(f"n{number:04}" for number in order), domain)


def draw_jobs(seed: int, n: int) -> list[Job]:
    """Draw a stream of jobs."""
    rng = np.random.default_rng([seed, 1])
    jobs = []
    for number in range(n):
        if rng.random() < _SINGLE_SHARE:
            gpus = int(rng.choice(list(_SINGLES), p=list(_SINGLES.values())))
            jobs.append(Job(f"j{number}", 1, gpus, ""))
        else:
            size = int(rng.choice(list(_GANGS), p=list(_GANGS.values())))
            level = _CLIQUE if size <= _CLIQUE_MOST else _BLOCK
            jobs.append(Job(f"j{number}", size, _GPUS, level))
    return jobs


def play(seed: int, load: int, by: Contestant, n_jobs: int, n_blocks: int) -> Tally:
    """Fill a cluster to a load, keep it there for so many jobs, and count from time to time in the second half."""
    nodes = draw_nodes(seed, n_blocks)
    cluster = Cluster(nodes, by)
    rng = np.random.default_rng([seed, 2])
    limit = load / 100 * _GPUS * len(nodes.names)
    tally, n_after = Tally(), 0
    for job in draw_jobs(seed, 4 * len(nodes.names) + n_jobs):
        wanted = job.pods * job.gpus
        is_full = cluster.used.sum() + wanted > limit
        while cluster.used.sum() + wanted > limit:
            cluster.remove(int(rng.integers(len(cluster.placed))))
        is_placed = cluster.place(job)
        if not (is_full or n_after):
            continue
        n_after += 1
        tally.asked += wanted
        tally.refused += 0 if is_placed else wanted
        if n_after > n_jobs // 2 and n_after % max(1, n_jobs // 2 // _MEASURES) == 0:
            free = cluster.used == 0
            for size, (n, level) in _WANTED.items():
                fits = np.bincount(nodes.domain[level], free) // n
                tally.fits[size].append(int(fits.sum()))
        if n_after >= n_jobs:
            break
    return tally


class Cluster:
    """A cluster that one contestant fills.

    Attributes:
        used: [nodes] the GPUs that are in use.
        placed: the jobs that run: the name of each, and the uid, the node and the GPUs of each of its pods.
    """

    def __init__(self, nodes: Nodes, by: Contestant) -> None:
        self._engine, self._by = Engine(by.settings, is_shared=False, explains=False), by
        for i, name in enumerate(nodes.names):
            labels = {label: f"{number[i]:03}" for label, number in nodes.domain.items()}
            amounts: wire.Quantities = {"cpu": 64, "pods": 110, names.GPU: _GPUS}
            meta = wire.Meta(name=name, uid=name, labels=labels | {_HOST: name})
            node = wire.Node(meta, status=wire.NodeStatus(allocatable=amounts))
            self._engine.handle(events.Seen(node), 0.0)
        if by.topology is not None:
            self._engine.handle(events.Seen(by.topology), 0.0)
        self._row = {name: row for row, name in enumerate(nodes.names)}
        self._groups: dict[str, str] = {}
        self.used = np.zeros(len(nodes.names), np.int64)
        self.placed: list[tuple[str, list[tuple[str, int, int]]]] = []

    def place(self, job: Job) -> bool:
        """Place a job, or give it up; return whether it runs."""
        group, pods = (self._by.write_gang if job.level else self._by.write_single)(job)
        if group is not None:
            self._engine.handle(events.Seen(group), 0.0)
            self._groups[job.name] = str(group.__struct_config__.tag)
        for pod in pods:
            self._engine.handle(events.Seen(pod), 0.0)
        binds = self._engine.decide(0.0, Unlimited()).binds
        if len(binds) < job.pods:
            self._forget(job.name, [pod.metadata.uid for pod in pods])
            return False
        for bind in binds:
            self._engine.handle(events.BindDone(bind.uid), 0.0)
            self.used[self._row[bind.node]] += job.gpus
        there = [(bind.uid, self._row[bind.node], job.gpus) for bind in binds]
        self.placed.append((job.name, there))
        return True

    def remove(self, number: int) -> None:
        """Let a job that runs end."""
        name, pods = self.placed.pop(number)
        for _, row, gpus in pods:
            self.used[row] -= gpus
        self._forget(name, [uid for uid, _, _ in pods])

    def _forget(self, name: str, uids: list[str]) -> None:
        for uid in uids:
            self._engine.handle(events.Gone("Pod", uid), 0.0)
        if name in self._groups:
            self._engine.handle(events.Gone(self._groups.pop(name), f"default/{name}"), 0.0)


# How jobs are written.


def _make_pods(
    job: Job, labels: Json | None = None, notes: Json | None = None, scheduler: str = ""
) -> list[wire.Pod]:
    asked: wire.Quantities = {"cpu": job.gpus, names.GPU: job.gpus}
    pods = []
    for i in range(job.pods):
        container = wire.Container("main", wire.Resources(asked, {names.GPU: job.gpus}))
        spec = wire.PodSpec(scheduler_name=scheduler or names.SCHEDULER, containers=[container])
        meta = wire.Meta(name=f"{job.name}-{i}", namespace="default", uid=f"{job.name}-{i}")
        meta.labels, meta.annotations = labels or {}, notes or {}
        pods.append(wire.Pod(meta, spec))
    return pods


def _make_meta(name: str) -> wire.Meta:
    return wire.Meta(name=name, namespace="default", uid=f"uid of {name}")


def _write_plain(job: Job) -> tuple[_Group, list[wire.Pod]]:
    return None, _make_pods(job)


def _write_plain_for_kube(job: Job) -> tuple[_Group, list[wire.Pod]]:
    return None, _make_pods(job, scheduler=_KUBE)


def _write_kube(job: Job, scheduler: str = "") -> tuple[_Group, list[wire.Pod]]:
    spec = {
        "schedulingPolicy": {"gang": {"minCount": job.pods}},
        "schedulingConstraints": {"topology": [{"key": job.level}]},
    }
    pods = _make_pods(job, scheduler=scheduler)
    for pod in pods:
        pod.spec.scheduling_group = {"podGroupName": job.name}
    return KubePodGroup(_make_meta(job.name), spec), pods


def _write_for_kube(job: Job) -> tuple[_Group, list[wire.Pod]]:
    return _write_kube(job, _KUBE)


def _write_kueue(job: Job) -> tuple[_Group, list[wire.Pod]]:
    notes = {names.KUEUE_TOTAL: str(job.pods), names.KUEUE_REQUIRED: job.level}
    return None, _make_pods(job, {names.KUEUE_GROUP: job.name}, notes)


def _write_kueue_single(job: Job) -> tuple[_Group, list[wire.Pod]]:
    return None, _make_pods(job, notes={names.KUEUE_UNCONSTRAINED: "true"})


def _write_kai(job: Job) -> tuple[_Group, list[wire.Pod]]:
    constraint = {"topology": "t", "requiredTopologyLevel": job.level}
    spec = {"minMember": job.pods, "topologyConstraint": constraint}
    pods = _make_pods(job, notes={names.KAI_GROUP: job.name})
    return KaiPodGroup(_make_meta(job.name), spec), pods


def list_ways() -> dict[str, dict[str, Contestant]]:
    """Who takes part, with single pods placed alike by the mode keel, and with each in its own way."""
    keel = config.parse_config({})
    packed = config.parse_config({"placement": {"scoring": {"mode": "most-allocated"}}})
    strategy = {"type": "MostAllocated", "resources": [{"name": names.GPU, "weight": 1}]}
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}
    kube = config.parse_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": _KUBE, "pluginConfig": [fit]}],
        }
    )
    both = replace(keel, profiles=(Profile(_KUBE, kube.placement),))
    spec = {"levels": [{"nodeLabel": label} for label in (_BLOCK, _CLIQUE, _HOST)]}
    of_kueue, of_kai = (
        KueueTopology(wire.GuardedMeta(name="t"), spec),
        KaiTopology(wire.Meta(name="t"), spec),
    )
    first = Contestant(keel, _write_kube, _write_plain)
    return {
        "alike": {
            "keel": first,
            "kueue": Contestant(keel, _write_kueue, _write_plain, of_kueue),
            "kai": Contestant(keel, _write_kai, _write_plain, of_kai),
            "most-allocated": Contestant(both, _write_for_kube, _write_plain),
        },
        "own": {
            "keel": first,
            "kueue": Contestant(keel, _write_kueue, _write_kueue_single, of_kueue),
            "kai": Contestant(packed, _write_kai, _write_plain, of_kai),
            "most-allocated": Contestant(kube, _write_for_kube, _write_plain_for_kube),
        },
    }
