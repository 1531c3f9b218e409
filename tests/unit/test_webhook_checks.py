"""What the webhook refuses, with which words, and what it lets in."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from scheduler.api import kinds, names
from scheduler.api.kind import Kind
from tests.unit.test_webhook_defaults import make, make_pod
from tests.unit.webhook_reviews import QUEUE, default, find_objection

Json = dict[str, Any]


def make_job(labels: Json | None = None, texts: Json | None = None, **spec: Any) -> Json:
    template = {"spec": {"containers": [{"name": "c"}]}}
    made = make({**QUEUE, **(labels or {})}, **{"suspend": True, "template": template, **spec})
    made["metadata"]["annotations"] = texts or {}
    return made


def make_topology(**texts: str) -> Json:
    template = {"metadata": {"annotations": texts}, "spec": {"containers": []}}
    return make_job(template=template, parallelism=4)


_RUNS: Json = {"suspend": False}


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (make_job({names.KUEUE_QUEUE: "A_b"}), (names.KUEUE_QUEUE, "'A_b' is not the name of a LocalQueue")),
        (make_job({names.KUEUE_QUEUE: "a" * 64}), (names.KUEUE_QUEUE, "at most 63")),
        (make_job({names.KUEUE_QUEUE: ""}), (names.KUEUE_QUEUE, "is not the name")),
        (make_job({names.KUEUE_CLASS: "-x"}), (names.KUEUE_CLASS, "WorkloadPriorityClass")),
        (make_job({names.KUEUE_RUN_TIME: "0"}), (names.KUEUE_RUN_TIME, "within 1..")),
        (make_job({names.KUEUE_RUN_TIME: "1h"}), (names.KUEUE_RUN_TIME, "'1h' is not an integer")),
        (make_job(texts={names.KUEUE_LEAST: "4"}, parallelism=4), (names.KUEUE_LEAST, "4 is not within 1..3")),
        (make_job(texts={names.KUEUE_LEAST: "0"}, parallelism=4), (names.KUEUE_LEAST, "within 1..")),
        (make_job(texts={names.KUEUE_EQUAL_COMPLETIONS: "yes"}), (names.KUEUE_EQUAL_COMPLETIONS, "neither true")),
        (make_job(texts={names.KUEUE_EQUAL_COMPLETIONS: "true"}), (names.KUEUE_EQUAL_COMPLETIONS, "Indexed")),
        (
            make_job(texts={names.KUEUE_EQUAL_COMPLETIONS: "true"}, completionMode="Indexed", parallelism=2, completions=3),
            ("spec.completions", "spec.parallelism"),
        ),
        (make_topology(**{names.KUEUE_REQUIRED: "rack", names.KUEUE_PREFERRED: "rack"}), (names.KUEUE_PREFERRED, "beside")),
        (make_topology(**{names.KUEUE_UNCONSTRAINED: "so"}), (names.KUEUE_UNCONSTRAINED, "neither true nor false")),
        (make_topology(**{names.KUEUE_SLICE_LEVEL: "rack"}), (names.KUEUE_SLICE_LEVEL, names.KUEUE_SLICE_SIZE)),
        (
            make_topology(**{names.KUEUE_SLICE_LEVEL: "rack", names.KUEUE_SLICE_SIZE: "5"}),
            (names.KUEUE_SLICE_SIZE, "5 is more than the 4 pods"),
        ),
        (
            make_job(texts={names.KUEUE_ELASTIC: "true", names.KUEUE_LEAST: "3"}, parallelism=4),
            (names.KUEUE_LEAST, names.KUEUE_ELASTIC, "together"),
        ),
        (make_job({names.KUEUE_PREBUILT: "A"}), (names.KUEUE_PREBUILT, "'A' is not the name of a Workload")),
        (make_job(texts={names.KUEUE_PREBUILT: "../other/workloads/w"}), (names.KUEUE_PREBUILT, "is not the name")),
        (make_job(texts={names.KUEUE_GATED: "a.io/one,,b.io/two"}), (names.KUEUE_GATED, "'' is not a domain with a path")),
        (make_job(texts={names.KUEUE_GATED: "one"}), (names.KUEUE_GATED, "'one' is not a domain with a path")),
        (make_job(texts={names.KUEUE_GATED: "A_b/one"}), (names.KUEUE_GATED, "is not a domain")),
        (make_job(texts={names.KUEUE_GATED: f"a.io/{'x' * 59}"}), (names.KUEUE_GATED, "at most 63")),
        (make_job(texts={names.KUEUE_GATED: "a.io/one, a.io/one"}), (names.KUEUE_GATED, "is named twice")),
        (make_job(parallelism="four"), ("spec.parallelism",)),
        ({"metadata": {"labels": {names.KUEUE_QUEUE: 5}}}, ("metadata.labels: cannot be read",)),
        ({"metadata": {"labels": QUEUE}, "spec": []}, ("spec: must be an object",)),
    ],
)  # fmt: skip
def test_a_job_with_a_mistake_is_refused(job: Json, words: tuple[str, ...]) -> None:
    found = find_objection(kinds.JOBS, job)
    assert found.startswith("Job team/x: ")
    assert all(word in found for word in words), found


@pytest.mark.parametrize(
    "job",
    [
        make_job(),
        make_job({names.KUEUE_QUEUE: "team.a-1", names.KUEUE_CLASS: "urgent", names.KUEUE_RUN_TIME: "3600"}),
        make_job(texts={names.KUEUE_LEAST: "3"}, parallelism=4),
        make_job(texts={names.KUEUE_EQUAL_COMPLETIONS: "true"}, completionMode="Indexed", parallelism=2, completions=2),
        make_topology(**{names.KUEUE_SLICE_LEVEL: "rack", names.KUEUE_SLICE_SIZE: "2", names.KUEUE_REQUIRED: "block"}),
    ],
)  # fmt: skip
def test_a_job_without_a_mistake_is_let_in(job: Json) -> None:
    assert find_objection(kinds.JOBS, job) == ""
    assert find_objection(kinds.JOBS, job, job) == ""


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        (None, "a.io/one, a.io/two", ""),
        ("a.io/one,a.io/two", "a.io/two", ""),
        ("a.io/one", "", ""),
        ("a.io/one", None, ""),
        ("", "a.io/one", "may not be added later"),
        (None, "a.io/one", "may not be added later"),
        ("a.io/one", "a.io/one,a.io/two", "'a.io/two' may not be added later"),
    ],
)
def test_those_who_have_to_agree_can_only_be_taken_off(
    before: str | None, after: str | None, word: str
) -> None:
    is_new = after == "a.io/one, a.io/two"
    old, new = (
        make_job(texts={} if text is None else {names.KUEUE_GATED: text})
        for text in (before, after)
    )
    for kind in (kinds.JOBS, kinds.PODS, kinds.DEPLOYMENTS):
        found = find_objection(kind, new, None if is_new else old)
        assert (names.KUEUE_GATED in found and word in found) if word else found == ""


def find_objection_to_gates(before: str | None, after: str) -> str:
    """Find what the webhook says of a job whose annotation changes; ``before``: None while it is created."""
    old, new = (
        None if text is None else make_job(texts={names.KUEUE_GATED: text})
        for text in (before, after)
    )
    assert new is not None
    return find_objection(kinds.JOBS, new, old)


def test_as_many_may_have_to_agree_as_are_read_at_once() -> None:
    longest = [f"a.io/{i:058}" for i in range(64)]
    assert find_objection_to_gates(None, ",".join(longest)) == ""
    many = ",".join(f"a.io/{i}" for i in range(65))
    assert "has more than 64 names, the maximum" in find_objection_to_gates(None, many)
    wide = ",".join(f"a.io/{i}" for i in range(32_000))
    found = find_objection_to_gates(None, wide)
    assert "has more than 4096 characters, the maximum" in found
    # What is quoted of it is short.
    assert len(found) < 300


def test_those_who_have_to_agree_are_checked_only_where_they_change() -> None:
    wide = ",".join(f"a.io/{i}" for i in range(5000))
    for text in ("not a name,,not a name", wide):
        assert find_objection_to_gates(text, text) == ""
        assert find_objection_to_gates(text, "") == ""
    assert "has more than 4096" in find_objection_to_gates(wide, f"{wide},a.io/5000")
    assert "has more than 4096" in find_objection_to_gates(wide, wide.removeprefix("a.io/0,"))
    assert find_objection_to_gates(wide, "a.io/1,a.io/4999") == ""
    assert "'a.io/5000' may not be added" in find_objection_to_gates(wide, "a.io/1,a.io/5000")


def test_a_job_of_more_kinds_of_pods_than_a_workload_has_is_refused() -> None:
    one = {"replicas": 1, "template": {"spec": {"template": {"spec": {}}}}}
    jobs = [{"name": f"j{i}", **one} for i in range(19)]
    found = find_objection(kinds.JOB_SETS, make(QUEUE, suspend=True, replicatedJobs=jobs))
    assert "19 kinds of pods; with a queue 18 are allowed" in found
    assert not find_objection(kinds.JOB_SETS, make(QUEUE, suspend=True, replicatedJobs=jobs[:18]))


_TO_OTHER: Json = {names.KUEUE_QUEUE: "other"}
_CLASS: Json = {names.KUEUE_CLASS: "urgent"}
_TIME: Json = {names.KUEUE_RUN_TIME: "60"}
_ELASTIC: Json = {names.KUEUE_ELASTIC: "true"}
_MADE, _OTHER = {names.KUEUE_PREBUILT: "w1"}, {names.KUEUE_PREBUILT: "w2"}


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        (make_job(**_RUNS), make_job(_TO_OTHER, **_RUNS), "may not change while it runs; it is 'q'"),
        (make_job(**_RUNS), make(suspend=False), "may not change while it runs"),
        (make_job(), make_job(_TO_OTHER, **_RUNS), "may not change while it runs"),
        (make_job(), make_job(_TO_OTHER), ""),
        (make_job(), make(suspend=True), ""),
        (make_job(**_RUNS), make_job(_TO_OTHER), ""),
        (make_job(**_RUNS), make_job(_CLASS, **_RUNS), "may not be added while it runs"),
        (make_job(), make_job(_CLASS), ""),
        (make_job(_CLASS), make_job(), "may not be removed"),
        (make_job(_CLASS, **_RUNS), make_job({names.KUEUE_CLASS: "low"}, **_RUNS), ""),
        (make_job(_TIME, **_RUNS), make_job(**_RUNS), "may not change while it runs"),
        (make_job(_MADE, **_RUNS), make_job(_OTHER, **_RUNS), "may not change while it runs; it is 'w1'"),
        (make_job(_MADE, **_RUNS), make_job(**_RUNS), "may not change while it runs; it is 'w1'"),
        (make_job(_MADE, **_RUNS), make_job(_MADE, _OTHER, **_RUNS), "may not change while it runs; it is 'w1'"),
        (make_job(_MADE, **_RUNS), make_job(texts=_MADE, **_RUNS), ""),
        (make_job(_MADE), make_job(_OTHER), ""),
        (make_job(_MADE, **_RUNS), make_job(_OTHER), ""),
        (make_job(), make_job(texts=_ELASTIC), ""),
        (make_job(texts=_ELASTIC), make_job(), ""),
        (make_job(**_RUNS), make_job(texts=_ELASTIC, **_RUNS), "may not change while the job runs"),
        (make_job(texts=_ELASTIC, **_RUNS), make_job(**_RUNS), "may not change while the job runs"),
        (make_job(**_RUNS), make_job(texts=_ELASTIC), "may not change while the job runs"),
        (make_job(texts=_ELASTIC, parallelism=4, **_RUNS), make_job(texts=_ELASTIC, parallelism=9, **_RUNS), ""),
        (make_job(_TIME), make_job(), ""),
        (make_job(_TIME), make_job(**_RUNS), "may not change while it runs"),
        (
            make_job(texts={names.KUEUE_LEAST: "2"}, parallelism=4, **_RUNS),
            make_job(texts={names.KUEUE_LEAST: "2"}, parallelism=5, **_RUNS),
            "spec.parallelism",
        ),
        (make_job(parallelism=4, **_RUNS), make_job(parallelism=5, **_RUNS), ""),
        (
            make_job(texts={names.KUEUE_EQUAL_COMPLETIONS: "true"}, completionMode="Indexed", **_RUNS),
            make_job(completionMode="Indexed", **_RUNS),
            f"metadata.annotations[{names.KUEUE_EQUAL_COMPLETIONS}]: may not change while it runs",
        ),
    ],
)  # fmt: skip
def test_what_of_a_job_may_change(before: Json, after: Json, word: str) -> None:
    found = find_objection(kinds.JOBS, after, before)
    assert (word in found) if word else found == ""


@pytest.mark.parametrize(
    "key", [names.KUEUE_REQUIRED, names.KUEUE_PREFERRED, names.KUEUE_SLICE_LEVEL]
)
def test_a_job_that_changes_its_size_cannot_have_its_pods_near_each_other(key: str) -> None:
    job = make_topology(**{key: "rack", names.KUEUE_SLICE_SIZE: "2"})
    if key != names.KUEUE_SLICE_LEVEL:
        del job["spec"]["template"]["metadata"]["annotations"][names.KUEUE_SLICE_SIZE]
    assert find_objection(kinds.JOBS, job) == ""
    job["metadata"]["annotations"] = _ELASTIC
    found = find_objection(kinds.JOBS, job)
    assert f"[{key}]: cannot be used together with {names.KUEUE_ELASTIC}" in found


def test_only_some_kinds_of_jobs_may_change_their_size() -> None:
    set_of_jobs = make(QUEUE, suspend=True)
    set_of_jobs["metadata"]["annotations"] = _ELASTIC
    found = find_objection(kinds.JOB_SETS, set_of_jobs)
    assert "not supported for a JobSet, only for Job, RayCluster" in found
    # One that is there may go on.
    assert find_objection(kinds.JOB_SETS, set_of_jobs, set_of_jobs) == ""


def test_a_cluster_of_ray_that_scales_itself_has_to_say_that_it_changes_its_size() -> None:
    cluster = make(QUEUE, suspend=True, enableInTreeAutoscaling=True)
    found = find_objection(kinds.RAY_CLUSTERS, cluster)
    assert "spec.enableInTreeAutoscaling: " in found
    assert names.KUEUE_ELASTIC in found
    assert find_objection(kinds.RAY_CLUSTERS, cluster, cluster) == ""
    elastic = {**cluster, "metadata": {**cluster["metadata"], "annotations": _ELASTIC}}
    assert find_objection(kinds.RAY_CLUSTERS, elastic) == ""
    job = make(QUEUE, suspend=True, rayClusterSpec={"enableInTreeAutoscaling": True})
    found = find_objection(kinds.RAY_JOBS, job)
    assert "spec.rayClusterSpec.enableInTreeAutoscaling: " in found


_CREW = {**QUEUE, names.KUEUE_GROUP: "crew"}
_TOTAL = {names.KUEUE_TOTAL: "2"}


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (make_pod({**QUEUE, names.KUEUE_MANAGED: "false"}), (names.KUEUE_MANAGED, "'false' is not true")),
        (make_pod(_CREW), (names.KUEUE_TOTAL, "is missing")),
        (make_pod(QUEUE, _TOTAL), (names.KUEUE_GROUP, "is missing")),
        (make_pod(_CREW, {names.KUEUE_TOTAL: "0"}), (names.KUEUE_TOTAL, "within 1..")),
        (make_pod({**QUEUE, names.KUEUE_GROUP: "Crew"}, _TOTAL), (names.KUEUE_GROUP, "a group of pods")),
        (make_pod(QUEUE, {names.KUEUE_UNCONSTRAINED: "x"}), (names.KUEUE_UNCONSTRAINED,)),
        (make_pod({names.KUEUE_QUEUE: "A"}), (names.KUEUE_QUEUE, "LocalQueue")),
        (make_pod({**QUEUE, names.KUEUE_PREBUILT: "w"}), (names.KUEUE_PREBUILT, "is only for jobs")),
    ],
)  # fmt: skip
def test_a_pod_with_a_mistake_is_refused(pod: Json, words: tuple[str, ...]) -> None:
    found = find_objection(kinds.PODS, pod)
    assert found.startswith("Pod team/x: ")
    assert all(word in found for word in words), found


def test_a_pod_without_a_mistake_is_let_in() -> None:
    for one in (make_pod(QUEUE), make_pod(_CREW, _TOTAL)):
        made = default(kinds.PODS, one)
        assert find_objection(kinds.PODS, made) == ""
        assert find_objection(kinds.PODS, made, made) == ""


def test_what_of_a_pod_may_change() -> None:
    before = default(kinds.PODS, make_pod(_CREW, _TOTAL))
    moved = copy.deepcopy(before)
    moved["metadata"]["labels"][names.KUEUE_GROUP] = "other"
    assert "may not change; it is 'crew'" in find_objection(kinds.PODS, moved, before)
    cheaper = copy.deepcopy(before)
    cheaper["metadata"]["annotations"][names.KUEUE_ROLE] = "other"
    assert names.KUEUE_ROLE in find_objection(kinds.PODS, cheaper, before)
    waits = copy.deepcopy(before)
    waits["metadata"]["labels"][names.KUEUE_QUEUE] = "other"
    assert find_objection(kinds.PODS, waits, before) == ""
    free = copy.deepcopy(before)
    del free["spec"]["schedulingGates"]
    # Kubernetes lets users take gates away.
    assert find_objection(kinds.PODS, free, before) == ""
    del waits["spec"]["schedulingGates"]
    assert "may not change while it runs" in find_objection(kinds.PODS, waits, free)


def _make_serving(kind: Kind, n: int = 2, n_ready: int = 0, **pod: Any) -> Json:
    template = {"spec": {"containers": [{"name": "c"}], **pod}}
    spec: Json = {"replicas": n, "template": template}
    if kind == kinds.LEADER_WORKER_SETS:
        spec = {"replicas": n, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}}
    return {**make(QUEUE, **spec), "status": {"readyReplicas": n_ready, "replicas": n_ready}}


@pytest.mark.parametrize(
    "kind", [kinds.DEPLOYMENTS, kinds.STATEFUL_SETS, kinds.LEADER_WORKER_SETS], ids=lambda one: one.kind
)  # fmt: skip
def test_what_serves_keeps_its_queue(kind: Kind) -> None:
    waits, runs = _make_serving(kind), _make_serving(kind, n_ready=1)
    moved = {**waits, "metadata": {"name": "x", "labels": _TO_OTHER}}
    assert find_objection(kind, moved, waits) == ""
    assert "may not change while it runs" in find_objection(kind, moved, runs)
    none = {**waits, "metadata": {"name": "x"}}
    assert "may not be removed" in find_objection(kind, none, waits)
    other = _make_serving(kind, nodeSelector={"disk": "ssd"})
    is_fixed = kind != kinds.DEPLOYMENTS
    assert ("may not change while the object has a queue" in find_objection(kind, other, waits)) is is_fixed  # fmt: skip
    image = copy.deepcopy(waits)
    _find_template(image)["spec"]["containers"][0]["image"] = "newer"
    assert find_objection(kind, image, waits) == ""


def _find_template(found: Json) -> Json:
    spec: Json = found["spec"]
    holder = spec.get("leaderWorkerTemplate", {"workerTemplate": spec.get("template")})
    template: Json = holder["workerTemplate"]
    return template


@pytest.mark.parametrize(("before", "after", "is_refused"), [(2, 3, True), (3, 2, True), (2, 0, False), (0, 3, False), (2, 2, False)])  # fmt: skip
def test_a_stateful_set_is_scaled_by_way_of_none(before: int, after: int, is_refused: bool) -> None:
    kind = kinds.STATEFUL_SETS
    found = find_objection(kind, _make_serving(kind, after), _make_serving(kind, before))
    assert ("scale to 0 first" in found) is is_refused


@pytest.mark.parametrize(("index", "start", "is_refused"), [("1", None, False), ("2", None, True), ("3", "2", False), ("4", "2", True)])  # fmt: skip
def test_a_pod_more_than_its_stateful_set_has_quota_for_is_refused(
    index: str, start: str | None, is_refused: bool
) -> None:
    texts = {**_TOTAL, names.KUEUE_PARENT: "statefulset"}
    if start is not None:
        texts[names.KUEUE_INDEX_OFFSET] = start
    pod = make_pod({**_CREW, names.SET_INDEX: index}, texts)
    without = make_pod({**QUEUE, names.SET_INDEX: index}, {names.KUEUE_PARENT: "statefulset"})
    assert find_objection(kinds.PODS, without) == ""
    assert ("has quota for 2 pods" in find_objection(kinds.PODS, pod)) is is_refused


def test_the_queue_of_a_set_stays_while_it_has_pods_that_wait() -> None:
    """They would keep the old one, as a set replaces only pods that become ready."""
    for kind, stays in ((kinds.STATEFUL_SETS, True), (kinds.DEPLOYMENTS, False)):
        before = {**_make_serving(kind), "status": {"replicas": 2}}
        moved = {**before, "metadata": {"name": "x", "labels": _TO_OTHER}}
        assert bool(find_objection(kind, moved, before)) is stays


def test_workers_that_come_after_their_leader_has_a_node_are_refused() -> None:
    found = _make_serving(kinds.LEADER_WORKER_SETS)
    found["metadata"]["annotations"] = {names.LWS_EXCLUSIVE: "rack"}
    objection = find_objection(kinds.LEADER_WORKER_SETS, found)
    assert names.LWS_EXCLUSIVE in objection
    assert names.KUEUE_REQUIRED in objection


def test_a_leader_worker_set_is_as_its_quota_is() -> None:
    kind = kinds.LEADER_WORKER_SETS
    before = _make_serving(kind)
    for change, word in (
        ({"startupPolicy": "LeaderReady"}, "spec.startupPolicy: LeaderReady is not possible"),
        ({"replicas": 5}, ""),
        ({"leaderWorkerTemplate": {**before["spec"]["leaderWorkerTemplate"], "size": 3}}, "leaderWorkerTemplate.size"),
        (
            {"leaderWorkerTemplate": {**before["spec"]["leaderWorkerTemplate"], "leaderTemplate": {"spec": {}}}},
            "leaderWorkerTemplate.leaderTemplate",
        ),
    ):  # fmt: skip
        after = {**before, "spec": {**before["spec"], **change}}
        found = find_objection(kind, after, before)
        assert (word in found) if word else found == ""
