"""Requests for shares in neutral words, and KAI's annotations, as the webhook writes them for what the cluster has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import names
from scheduler.api.admission.backends import WAYS, Backend
from scheduler.api.admission.settings import AdmissionSettings, NvidiaAdmission
from scheduler.api.door import events
from scheduler.api.door.events import Seen
from scheduler.config import Config
from scheduler.devices.admission import steps
from scheduler.devices.admission.steps import Allowed, ClusterFacts, Denied
from scheduler.engine.engine import Engine
from scheduler.engine.questions.nodes import SharedGpus
from tests import make
from tests.unit.device_pods import make_container, make_pod
from tests.unit.jsonpatch import apply_patch

Json = dict[str, Any]
GPU, SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"
SMALL, MIDDLE = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"
MARKS = (("nvidia.com/gpu.replicas", "4"), ("nvidia.com/gpu.memory", "40960"))
HAMI = Backend("hami", GPU, 1.0, 81559)
MIG = [
    Backend("mig", SMALL, 1 / 7, 9856, (), 9856 / 81920),
    Backend("mig", MIDDLE, 3 / 7, 40448, (), 40448 / 81920),
]
MPS = Backend("mps", SHARED, 1 / 10, 4096, (("nvidia.com/gpu.replicas", "10"),))
SLICED = Backend("time-slicing", GPU, 1 / 4, 10240, MARKS)
ALL = (HAMI, *MIG, MPS, SLICED)
# What the webhook makes of a GPU without further words; where GPUs are only counted, it is one device.
WHOLE = {GPU: "1", "nvidia.com/gpucores": "100"}


def review(pod: Json, *there: Backend, ways: tuple[str, ...] = WAYS) -> steps.Verdict:
    settings = replace(AdmissionSettings(), ways=ways)
    facts = ClusterFacts(list_backends=lambda _cards, _pod: there)
    return steps.review_pod(msgspec.json.encode(pod), "team", settings, facts)


def admit(pod: Json, *there: Backend, ways: tuple[str, ...] = WAYS) -> Json:
    verdict = review(pod, *there, ways=ways)
    assert isinstance(verdict, Allowed), verdict
    made: Json = apply_patch(pod, verdict.patch)
    # The API server calls the webhook again if another one has changed the pod: nothing more is changed.
    assert review(made, *there, ways=ways) == Allowed([])
    return made


def ask(memory: str | None = None, cores: str | None = None) -> Json:
    given = {names.SHARE_MEMORY: memory, names.SHARE_CORES: cores}
    return make_pod(make_container(limits={key: one for key, one in given.items() if one}))


def limits(pod: Json) -> Json:
    found: Json = pod["spec"]["containers"][0]["resources"]["limits"]
    return found


@pytest.mark.parametrize(
    ("memory", "cores", "there", "found"),
    [
        ("8Gi", None, ALL, {GPU: "1", "nvidia.com/gpumem": "8192"}),
        ("8Gi", "30", ALL, {GPU: "1", "nvidia.com/gpumem": "8192", "nvidia.com/gpucores": "30"}),
        (None, "30", ALL, {GPU: "1", "nvidia.com/gpumem-percentage": "30", "nvidia.com/gpucores": "30"}),
        # 1.5 MiB is 2 MiB, not 1.
        ("1572864", None, ALL, {GPU: "1", "nvidia.com/gpumem": "2"}),
        # The smallest instance that suffices in both.
        ("8Gi", None, MIG, {SMALL: "1"}),
        ("8Gi", "20", MIG, {MIDDLE: "1"}),
        ("10Gi", None, MIG, {MIDDLE: "1"}),
        (None, "43", MIG, {MIDDLE: "1"}),
        ("4Gi", None, (SLICED, MPS), {SHARED: "1"}),
        ("8Gi", None, (SLICED, MPS), WHOLE),
    ],
)  # fmt: skip
def test_a_share_is_written_as_what_the_cluster_has(
    memory: str | None, cores: str | None, there: tuple[Backend, ...], found: Json
) -> None:
    made = admit(ask(memory, cores), *there)
    assert limits(made) == found
    requested = made["spec"]["containers"][0]["resources"]["requests"]
    assert not {names.SHARE_MEMORY, names.SHARE_CORES} & requested.keys()
    assert made["spec"]["schedulerName"] == "evenkeel"
    note = made["metadata"]["annotations"][names.SHARED_AS]
    assert note.startswith("main: evenkeel.dev/gpu-")


def test_a_part_of_the_memory_is_a_part_of_the_memory() -> None:
    """Slices of compute and of memory differ: seven of one kind, eight of the other."""
    small = Backend("mig", "nvidia.com/mig-1g.5gb", 1 / 7, 4864, (), 4864 / 40960)
    half = Backend("mig", "nvidia.com/mig-3g.20gb", 3 / 7, 19968, (), 19968 / 40960)
    assert limits(admit(ask(None, "12"), small, half)) == {small.resource: "1"}
    # 14 percent of the compute are there, and 12 of the memory.
    assert limits(admit(ask(None, "14"), small, half)) == {half.resource: "1"}
    assert limits(admit(kai(gpu_fraction="0.49"), small, half)) == {half.resource: "1"}
    assert isinstance(review(kai(gpu_fraction="0.5"), small, half), Denied)
    # Where no label says of how much memory the instances are, a slice has at least an eighth.
    unknown = small._replace(memory=0.0)
    assert limits(admit(ask(None, "12"), unknown)) == {small.resource: "1"}
    assert isinstance(review(ask(None, "14"), unknown), Denied)


def test_nodes_that_share_gpus_under_the_usual_name_are_selected() -> None:
    made = admit(ask("8Gi"), SLICED)
    assert made["spec"]["nodeSelector"] == dict(MARKS)
    assert made["metadata"]["annotations"][names.SHARED_AS] == (
        "main: evenkeel.dev/gpu-memory 8Gi as nvidia.com/gpu (time-slicing)"
    )
    # A pod that wants other nodes gets what these have.
    picky = ask("4Gi")
    picky["spec"]["nodeSelector"] = {"nvidia.com/gpu.replicas": "10", "x": "y"}
    assert limits(admit(picky, SLICED, MPS)) == {SHARED: "1"}
    refused = review(picky, SLICED)
    assert isinstance(refused, Denied)


@pytest.mark.parametrize("there", [MIG[0], MPS])
def test_who_gets_a_part_sees_it_where_cards_are_hidden_from_others(there: Backend) -> None:
    nvidia = NvidiaAdmission(hides_cards=True, runtime_class="nvidia")
    settings = replace(AdmissionSettings(), nvidia=nvidia)
    pod = make_pod(make_container("a"), *ask("4Gi")["spec"]["containers"])
    facts = ClusterFacts(list_backends=lambda _cards, _pod: (there,))
    verdict = steps.review_pod(msgspec.json.encode(pod), "team", settings, facts)
    assert isinstance(verdict, Allowed)
    made = apply_patch(pod, verdict.patch)["spec"]
    beside, own = made["containers"]
    assert beside["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}]
    assert "env" not in own
    assert made["runtimeClassName"] == "nvidia"


def test_all_containers_of_a_pod_are_served_in_one_way() -> None:
    """No node offers MIG instances and replicas of the same GPUs: such a pod would wait for ever."""
    halves = Backend("time-slicing", SHARED, 1 / 2, 40960)
    pod = make_pod(
        make_container("a", {names.SHARE_MEMORY: "8Gi"}),
        make_container("b", {names.SHARE_MEMORY: "40Gi"}),
    )
    made = admit(pod, MIG[0], halves)["spec"]["containers"]
    assert [one["resources"]["limits"] for one in made] == [{SHARED: "1"}] * 2
    picky = make_container("c", {names.SHARE_CORES: "10", names.SHARE_MEMORY: "1Gi"})
    thin = halves._replace(gpus=1 / 20)
    mixed = review(make_pod(picky, *pod["spec"]["containers"]), MIG[0], thin)
    assert isinstance(mixed, Denied)
    assert "the pod's other containers" in mixed.message
    none = review(pod, MIG[0])
    assert isinstance(none, Denied)
    assert none.message.startswith("container b: ")


def test_the_order_of_ways_is_a_setting() -> None:
    assert limits(admit(ask("8Gi"), *ALL, ways=("time-slicing", "hami"))) == WHOLE
    assert limits(admit(ask("8Gi"), *ALL, ways=("mig",))) == {SMALL: "1"}


@pytest.mark.parametrize(
    ("memory", "cores", "there", "words"),
    [
        ("8Gi", None, (), "main: evenkeel.dev/gpu-memory 8Gi: no node shares its GPUs"),
        (
            "41Gi",
            None,
            MIG,
            (
                "no share on any node suffices; the largest are mig nvidia.com/mig-3g.40gb: 40448 MiB, 43% of a GPU; "
                "mig nvidia.com/mig-1g.10gb: 9856 MiB, 14% of a GPU"
            ),
        ),
        ("100Gi", None, (HAMI,), "no share on any node suffices"),
        ("0", None, ALL, "0 is not an amount of memory such as 8Gi"),
        ("1k", None, ALL, "1000 bytes are less than 1Mi"),
        ("-8Gi", None, ALL, "is negative"),
        ("3000Ti", None, ALL, "is not an amount of memory"),
        ("x", None, ALL, "evenkeel.dev/gpu-memory"),
        (None, "101", ALL, "101 is not within 1..100"),
        (None, "1500m", ALL, "1500m is no whole number"),
    ],
)
def test_what_cannot_be_served_is_refused_with_what_there_is(
    memory: str | None, cores: str | None, there: tuple[Backend, ...], words: str
) -> None:
    verdict = review(ask(memory, cores), *there)
    assert isinstance(verdict, Denied)
    assert "container main: " in verdict.message
    assert words in verdict.message


@pytest.mark.parametrize("other", [GPU, "nvidia.com/gpumem", SMALL, SHARED])
def test_neutral_words_do_not_stand_beside_others(other: str) -> None:
    pod = make_pod(make_container(limits={names.SHARE_MEMORY: "8Gi", other: "1"}))
    verdict = review(pod, *ALL)
    assert isinstance(verdict, Denied)
    assert f"may not stand beside {other}" in verdict.message


def kai(*containers: Json, scheduler: str = "evenkeel", **notes: str) -> Json:
    pod = make_pod(*(containers or (make_container(),)), scheduler=scheduler)
    pod["metadata"]["annotations"] = {key.replace("_", "-"): text for key, text in notes.items()}
    return pod


def test_kais_annotations_are_served_by_what_the_cluster_has() -> None:
    half = {GPU: "1", "nvidia.com/gpumem-percentage": "50"}
    assert limits(admit(kai(gpu_fraction="0.5"), *ALL)) == half
    mib = {GPU: "1", "nvidia.com/gpumem": "9000"}
    assert limits(admit(kai(gpu_memory="9000"), *ALL)) == mib
    assert limits(admit(kai(gpu_memory="9000"), *MIG)) == {SMALL: "1"}
    assert limits(admit(kai(gpu_fraction="0.2"), *MIG)) == {MIDDLE: "1"}
    assert limits(admit(kai(gpu_fraction="0.25"), SLICED)) == WHOLE
    # Several devices are different ones; of a plugin's parts several may be of one.
    several = kai(gpu_fraction="0.5", gpu_fraction_num_devices="2")
    assert limits(admit(several, *ALL)) == half | {GPU: "2"}
    assert isinstance(review(several, *MIG), Denied)


def test_kais_annotations_are_for_one_container() -> None:
    both = make_container("a"), make_container("b")
    made = admit(kai(*both, gpu_fraction="0.5", gpu_fraction_container_name="b"), HAMI)
    first, second = made["spec"]["containers"]
    assert "limits" not in first["resources"]
    assert second["resources"]["limits"][GPU] == "1"
    wrong = review(kai(*both, gpu_fraction="0.5", gpu_fraction_container_name="c"), HAMI)
    assert isinstance(wrong, Denied)
    assert "the pod has no container 'c'" in wrong.message
    endless = review(
        kai(*both, gpu_fraction="0.5", gpu_fraction_container_name="c" * 200_000), HAMI
    )
    assert isinstance(endless, Denied)
    assert len(endless.message) < 300
    beside = review(kai(*both, gpu_fraction="1.5"), HAMI)
    assert isinstance(beside, Denied)
    assert "metadata.annotations[gpu-fraction]" in beside.message
    # Who requests cards itself, or belongs to another scheduler, stays as it is.
    own = kai(make_container(limits={SMALL: "1"}), gpu_fraction="0.5")
    assert review(own, *ALL) == Allowed([])
    assert review(kai(gpu_fraction="0.5", scheduler="kai-scheduler"), *ALL) == Allowed([])


def test_annotations_like_kais_mean_nothing_on_other_pods() -> None:
    """Their names are short: what somebody else means by them must neither change nor refuse a pod."""
    words = {"gpu_memory": "8Gi"}
    own = kai(make_container(limits={GPU: "1"}), **words)
    assert limits(admit(own, *ALL)) == WHOLE
    for notes in (words, {"gpu_memory": "9000"}):
        assert review(kai(scheduler="default-scheduler", **notes), *ALL) == Allowed([])
    assert isinstance(review(kai(**words), *ALL), Denied)


@given(
    st.lists(
        st.builds(
            Backend,
            st.sampled_from(WAYS),
            st.sampled_from([GPU, SHARED, SMALL]),
            st.sampled_from([1 / 7, 1 / 4, 3 / 7, 1.0]),
            st.integers(0, 90_000),
            st.just(()),
            st.just(0.0),
        ),
        max_size=5,
    ),
    st.integers(1, 100_000),
    st.integers(1, 100),
)
def test_who_is_admitted_gets_enough(there: list[Backend], mib: int, cores: int) -> None:
    """Whatever there is: what a pod gets has the memory and the compute, and is refused only if nothing has both."""
    verdict = review(ask(f"{mib}Mi", str(cores)), *there)
    fit = [
        one
        for one in there
        if one.mib >= mib and (one.way == "hami" or round(one.gpus * 100 + 0.49) >= cores)
    ]
    if isinstance(verdict, Denied):
        assert not fit
        return
    made = apply_patch(ask(f"{mib}Mi", str(cores)), verdict.patch)  # type: ignore[union-attr]
    best = min(fit, key=lambda one: WAYS.index(one.way))
    assert f"({best.way})" in made["metadata"]["annotations"][names.SHARED_AS]


def test_the_engine_lists_what_nodes_share() -> None:
    engine = Engine(Config())
    labels = {**dict(MARKS), "nvidia.com/gpu.sharing-strategy": "time-slicing"}
    mig = {f"{SMALL}.memory": "9856", "nvidia.com/gpu.memory": "81920"}
    nodes = [
        *(make.node(name=f"s{i}", gpus=32, labels=labels) for i in range(2)),
        make.node(name="m", labels=mig, allocatable={SMALL: 7}),
        make.node(name="whole", gpus=8),
        make.hami_node(name="h", cards=make.cards(count=2)),
        make.node(name="unknown", allocatable={SHARED: 64}),
    ]
    for node in nodes:
        engine.handle(Seen(node), now=0.0)
    marks = (*MARKS, ("nvidia.com/gpu.sharing-strategy", "time-slicing"))
    found = engine.ask(SharedGpus(GPU))
    (hami,) = (one for one in found if one.way == "hami")
    assert hami.mib == make.cards(count=1)[0]["devmem"]
    assert sorted(one for one in found if one.way != "hami") == [
        Backend("mig", SMALL, 1 / 7, 9856, (), 9856 / 81920),
        Backend("time-slicing", GPU, 1 / 4, 10240, marks, 1 / 4),
    ]


def test_nodes_of_another_scheduler_share_nothing_with_pods_of_ours() -> None:
    engine = Engine(Config(hami_scheduler_nodes="scheduler=hami"))
    theirs = make.hami_node(name="a", cards=1, labels={"scheduler": "hami"})
    small, large = (make.card(uuid=f"GPU-{mib}", mib=mib) for mib in (2048, 4096))
    for node in (theirs, make.hami_node(name="b", cards=[small, large])):
        engine.handle(Seen(node), now=0.0)
    (hami,) = engine.ask(SharedGpus(GPU))
    # The largest card of any node counts, whichever the plugin names first.
    assert hami.mib == 4096
    engine.handle(events.Gone("Node", "b"), 0.0)
    assert engine.ask(SharedGpus(GPU)) == ()


def test_a_pod_that_was_not_translated_says_so() -> None:
    cluster = make.cluster(nodes=[make.node(gpus=1)])
    record = cluster.see_pod(make.pod(name="p", requests={names.SHARE_MEMORY: "8Gi"}))
    assert record is not None
    problem = record.template.problem
    assert problem is not None
    assert problem.field == "spec.containers[].resources.limits[evenkeel.dev/gpu-memory]"
    assert "turn it on, and create the pod anew" in problem.text
