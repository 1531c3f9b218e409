"""Pods of groups that have succeeded are not missing: their group is neither held nor sent away for want of them."""

from typing import Any

import pytest

from scheduler.api import kinds, names, wire
from scheduler.api.door import events
from scheduler.api.groups import objects
from scheduler.config import Config, parse_config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.engine.questions.pods import MissingKeys
from scheduler.engine.recorded import Recorded
from scheduler.engine.rerun import rerun
from scheduler.state.groups import successes
from tests import make

GANG = "gang.scheduling.koordinator.sh/"
RESTART = {names.ON_FAILURE: "restart"}
JOB_LABELS = {"training.kubeflow.org/operator-name": "pytorchjob-controller"}


class Scene:
    """A node, time, and a group whose pods get a node as soon as that is decided."""

    def __init__(self, system: str = "Koordinator", engine: Engine | None = None) -> None:
        self.engine = engine or Engine(Config())
        self.system, self.now = system, 1000.0
        self.bodies: dict[str, wire.Pod] = {}
        self.see(make.node(name="a", cpu=64), *OBJECTS.get(system, ()))

    def see(self, *found: events.Object) -> None:
        for one in found:
            self.engine.handle(events.Seen(one), self.now)

    def add(self, *named: str) -> None:
        for name in named:
            self.bodies[name] = make_member(self.system, name)
            self.see(self.bodies[name])

    def end(self, *named: str, phase: str = "Succeeded") -> None:
        for name in named:
            self.bodies[name].status.phase = phase
            self.see(self.bodies[name])

    def gone(self, *named: str) -> None:
        for name in named:
            self.engine.handle(events.Gone("Pod", f"default/{name}"), self.now)

    def pass_time(self, seconds: float = 5.0) -> tuple[list[str], list[str]]:
        """Let time pass; return the pods that got a node, and those that are to go."""
        placed, sent = [], []
        until = self.now + seconds
        while self.now < until:
            self.now += 5
            outcome = self.engine.decide(self.now, Unlimited())
            for bind in outcome.binds:
                pod = self.bodies[bind.uid.partition("/")[2]]
                pod.spec.node_name, pod.status.phase = bind.node, "Running"
                self.engine.handle(events.BindDone(bind.uid), self.now)
                self.see(pod)
                placed.append(pod.metadata.name)
            sent += [uid for evict in outcome.evicts for uid in evict.victims]
        return sorted(placed), sent

    @property
    def n_broken(self) -> int:
        return len(self.engine._cluster.groups.shortages.below)


def make_owner(shape: type[Any], spec: Any, status: Any = None) -> Any:
    meta = wire.Meta(name="g", namespace="default", uid="u")
    meta.annotations = {names.GANG: "all", **RESTART}
    return shape(metadata=meta, spec=spec, status=status)


def make_group(shape: type[Any], **annotations: str) -> Any:
    meta = wire.Meta(name="g", namespace="default", uid="u", annotations=annotations)
    return shape(metadata=meta, spec={"minMember": 3})


def make_kube_group(**annotations: str) -> objects.KubePodGroup:
    group = make.pod_group("g", 3)
    group.metadata.annotations = annotations
    return group


def make_job(completions: int = 3, parallelism: int = 3, succeeded: int = 0) -> objects.Job:
    spec = {"parallelism": parallelism, "completions": completions}
    found: objects.Job = make_owner(objects.Job, spec, {"succeeded": succeeded})
    return found


OBJECTS: dict[str, tuple[Any, ...]] = {
    "scheduler-plugins": (make_group(objects.XPodGroup, **RESTART),),
    "KAI": (make_group(objects.KaiPodGroup),),
    "Volcano": (make_group(objects.VolcanoPodGroup, **RESTART),),
    "Kubernetes": (make_kube_group(**RESTART),),
    "Job": (make_job(),),
    "PyTorchJob": (
        make_owner(
            objects.PyTorchJob,
            {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 2}}},
        ),
    ),
}
WORDS: dict[str, dict[str, Any]] = {
    "Koordinator": {"annotations": {f"{GANG}name": "g", f"{GANG}min-available": "3", **RESTART}},
    "Kueue": {
        "labels": {names.KUEUE_GROUP: "g"},
        "annotations": {names.KUEUE_TOTAL: "3", **RESTART},
    },
    "scheduler-plugins": {"labels": {names.X_GROUP: "g"}},
    "KAI": {"annotations": {names.KAI_GROUP: "g"}},
    "Volcano": {"annotations": {names.VOLCANO_GROUP: "g"}},
    "Kubernetes": {"spec": {"schedulingGroup": {"podGroupName": "g"}}},
    "Job": {},
    "PyTorchJob": {"labels": {names.TRAINING_NAME: "g", **JOB_LABELS}},
}
SYSTEMS = list(WORDS)


def make_member(system: str, name: str) -> wire.Pod:
    words: dict[str, Any] = {key: dict(value) for key, value in WORDS[system].items()}
    if system == "PyTorchJob":
        words["labels"][names.TRAINING_PART] = "master" if name == "p2" else "worker"
    pod = make.pod(name=name, cpu=1, **words)
    if system in ("Job", "PyTorchJob"):
        group = "batch/v1" if system == "Job" else "kubeflow.org/v1"
        pod.metadata.owner_references = [
            wire.Owner(kind=system, name="g", api_version=group, controller=True)
        ]
    return pod


def make_running(system: str = "Koordinator", engine: Engine | None = None) -> Scene:
    """A group of three that runs."""
    scene = Scene(system, engine)
    scene.add("p0", "p1", "p2")
    assert scene.pass_time() == (["p0", "p1", "p2"], [])
    return scene


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("ended", [["p0"], ["p0", "p1"]])
def test_a_group_whose_pods_succeed_one_after_the_other_is_left_alone(
    system: str, ended: list[str]
) -> None:
    scene = make_running(system)
    scene.end(*ended)
    assert scene.pass_time(200) == ([], [])
    assert scene.n_broken == 0


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_group_whose_pod_fails_is_below_its_minimum_all_the_same(system: str) -> None:
    scene = make_running(system)
    scene.end("p0", phase="Failed")
    scene.pass_time()
    assert scene.n_broken == 1
    assert scene.pass_time(100)[1] == ["default/p1", "default/p2"]


def test_a_gang_of_kai_of_which_a_pod_has_succeeded_never_goes_by_itself() -> None:
    """As in KAI, whatever else is missing."""
    scene = make_running("KAI")
    scene.end("p0")
    scene.end("p1", phase="Failed")
    assert scene.pass_time(200) == ([], [])
    assert scene.n_broken == 0


def test_another_group_goes_if_a_pod_has_failed_beside_one_that_has_succeeded() -> None:
    scene = make_running("Volcano")
    scene.end("p0")
    scene.end("p1", phase="Failed")
    assert scene.pass_time(100)[1] == ["default/p2"]


def test_a_pod_that_is_sent_away_and_ends_well_has_not_succeeded() -> None:
    scene = make_running("Volcano")
    scene.bodies["p0"].metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    scene.end("p0")
    assert scene.pass_time(100)[1] == ["default/p1", "default/p2"]


def test_a_pod_that_has_succeeded_still_counts_while_it_is_being_deleted() -> None:
    scene = make_running("Volcano")
    scene.end("p0")
    scene.bodies["p0"].metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    scene.end("p0")
    assert scene.pass_time(100) == ([], [])


def test_a_pod_that_was_cleaned_up_counts_as_long_as_its_group_has_another() -> None:
    scene = make_running("Kueue")
    scene.end("p0", "p1")
    scene.gone("p0", "p1")
    assert scene.pass_time(200) == ([], [])
    scene.end("p2", phase="Failed")
    scene.add("again")
    assert scene.pass_time() == ([], [])
    assert not list(scene.engine._cluster.groups.successes.list_all())


def test_a_pod_whose_object_is_there_counts_even_if_its_group_has_no_other_for_a_while() -> None:
    scene = make_running("Kueue")
    scene.end("p0", "p1")
    scene.gone("p0")
    scene.end("p2", phase="Failed")
    scene.pass_time()
    scene.add("again")
    assert scene.pass_time() == (["again"], [])


def test_a_pod_of_the_same_name_does_the_work_anew() -> None:
    scene = make_running("Kueue")
    scene.end("p0")
    scene.gone("p0")
    scene.add("p0")
    scene.end("p1", "p2", phase="Failed")
    scene.add("q1")
    assert scene.pass_time() == ([], [])
    scene.add("q2")
    assert scene.pass_time() == (["p0", "q1", "q2"], [])


def test_a_pod_of_the_same_rank_does_the_work_anew() -> None:
    scene = Scene()
    ranks = {"p0": "0", "p1": "1", "p2": "2", "q0": "0", "q1": "1"}
    for name, rank in ranks.items():
        pod = scene.bodies[name] = make_member("Koordinator", name)
        assert pod.metadata.annotations is not None
        pod.metadata.annotations[names.GANG_INDEX] = rank
    scene.see(*(scene.bodies[name] for name in ("p0", "p1", "p2")))
    scene.pass_time()
    scene.end("p0")
    scene.see(scene.bodies["q0"])
    (counted,) = scene.engine._cluster.groups.list_roots()
    assert not scene.engine._cluster.groups.list_successes(counted)


def test_what_pods_did_is_forgotten_with_the_object_of_their_group() -> None:
    scene = make_running("Volcano")
    scene.end("p0", "p1")
    scene.engine.handle(events.Gone("PodGroup.scheduling.volcano.sh", "default/g"), scene.now)
    scene.see(*OBJECTS["Volcano"])
    scene.pass_time()
    assert scene.n_broken == 1


def test_another_object_of_the_same_name_is_another_group() -> None:
    scene = make_running("Volcano")
    scene.end("p0", "p1")
    another = make_group(objects.VolcanoPodGroup, **RESTART)
    another.metadata.uid = "another"
    scene.see(another)
    scene.pass_time()
    assert scene.n_broken == 1


def test_a_namespace_remembers_so_many_deleted_pods_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(successes, "DELETED_MAX", 1)
    scene = make_running("Volcano")
    scene.end("p0", "p1")
    scene.gone("p0", "p1")
    assert [one.name for one in scene.engine._cluster.groups.successes.list_all()] == ["p1"]
    scene.pass_time()
    assert scene.n_broken == 1


def test_pods_of_one_group_do_not_count_for_another() -> None:
    scene = make_running("Kueue")
    scene.end("p0", "p1", "p2")
    other = make.pod(
        name="q", labels={names.KUEUE_GROUP: "h"}, annotations={names.KUEUE_TOTAL: "3"}
    )
    scene.bodies["q"] = other
    scene.see(other)
    assert scene.pass_time(100) == ([], [])


def test_a_new_list_of_pods_tells_which_of_them_have_been_cleaned_up() -> None:
    scene = make_running("Kueue")
    scene.end("p0", "p1")
    question = MissingKeys(kinds.PODS.name, {"default/p0", "default/p2"}, names.SCHEDULER)
    assert scene.engine.ask(question) == ["default/p1"]
    scene.gone("p1")
    assert scene.engine.ask(question) == []


def test_koordinators_gang_stays_satisfied_so_its_pods_come_again_one_by_one() -> None:
    scene = make_running("Koordinator")
    scene.end("p0")
    scene.end("p1", "p2", phase="Failed")
    scene.add("again")
    assert scene.pass_time() == (["again"], [])


def test_a_group_of_kueue_in_which_one_has_succeeded_needs_the_others_at_once() -> None:
    scene = make_running("Kueue")
    scene.end("p0")
    scene.end("p1", "p2", phase="Failed")
    scene.add("again")
    assert scene.pass_time() == ([], [])
    scene.add("too")
    assert scene.pass_time() == (["again", "too"], [])


def test_a_job_that_runs_in_waves_needs_each_wave_at_once() -> None:
    scene = Scene("Job")
    scene.see(make_job(completions=5))
    scene.add("p0", "p1", "p2")
    scene.pass_time()
    scene.end("p0", "p1", "p2")
    scene.add("q0")
    assert scene.pass_time() == ([], [])
    scene.add("q1")
    assert scene.pass_time() == (["q0", "q1"], [])


@pytest.mark.parametrize(
    ("system", "status"),
    [
        ("Job", {"succeeded": 2}),
        ("PyTorchJob", {"replicaStatuses": {"Worker": {"active": 0, "succeeded": 2}}}),
    ],
)
def test_a_new_leader_believes_what_the_owner_counts(system: str, status: Any) -> None:
    """The pods that have succeeded may be gone by then."""
    scene = Scene(system)
    scene.see(make_owner(type(OBJECTS[system][0]), OBJECTS[system][0].spec, status))
    scene.add("p2")
    assert scene.pass_time(200) == (["p2"], [])
    assert scene.n_broken == 0


def test_a_new_leader_learns_from_the_list_which_pods_have_succeeded() -> None:
    old = make_running("Kueue")
    old.end("p0", "p1")
    scene = Scene("Kueue")
    scene.see(*old.bodies.values())
    assert scene.pass_time(200) == ([], [])
    assert scene.n_broken == 0


def test_in_kube_schedulers_mode_no_group_goes_because_its_pods_have_succeeded() -> None:
    config = parse_config({"placement": {"scoring": {"mode": "kube-scheduler"}}})
    scene = make_running("Kubernetes", Engine(config))
    scene.end("p0", "p1")
    assert scene.pass_time(200) == ([], [])
    assert scene.n_broken == 0


def test_a_fresh_start_of_the_log_knows_who_has_succeeded() -> None:
    lines: list[bytes] = []
    engine = Recorded(Config(), "test", lines.append)
    scene = make_running("Kueue", engine)
    scene.end("p0", "p1")
    scene.gone("p0")
    first = len(lines)
    engine.start_anew(scene.now)
    assert scene.pass_time(100) == ([], [])
    scene.end("p2", phase="Failed")
    scene.add("again")
    assert scene.pass_time() == (["again"], [])
    for part in (lines[:first], lines[first:]):
        assert rerun(part).difference is None
