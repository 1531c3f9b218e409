"""What a pod asks for, as kube-scheduler sums it; and which pods are of one template."""

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import names, wire
from scheduler.api.pods import requests, templates
from scheduler.errors import BadInput
from tests import make, slices
from tests.oracles import requests as twin

Json = dict[str, Any]
MI = 2**20


def container(name: str = "main", *, sidecar: bool = False, **asked: str | int) -> Json:
    named = {key.replace("_", "-"): quantity for key, quantity in asked.items()}
    return make.container(name=name, requests=named, sidecar=sidecar)


def pod(
    *containers: Json, init: list[Json] | None = None, status: Json | None = None, **spec: Any
) -> Json:
    body = {"containers": list(containers), "initContainers": init or [], **spec}
    return {"metadata": {"name": "p"}, "spec": body, "status": status or {}}


def asked(body: Json) -> requests.Requests:
    return requests.read_requests(msgspec.convert(body, wire.Pod))


@pytest.mark.parametrize(
    ("body", "cpu"),
    [
        pytest.param(pod(container(cpu="1"), container(cpu="300m")), 1300, id="containers add up"),
        pytest.param(pod(container(cpu=1), init=[container("i", cpu=3)]), 3000, id="an init container runs alone"),
        pytest.param(pod(container(cpu=1), init=[container("i", cpu=3), container("j", cpu=2)]), 3000, id="of init containers the largest counts"),
        pytest.param(pod(container(cpu=1), init=[container("s", cpu=2, sidecar=True)]), 3000, id="a sidecar stays beside the containers"),
        pytest.param(pod(container(cpu=1), init=[container("s", cpu=2, sidecar=True), container("i", cpu=5)]), 7000, id="an init container runs on top of earlier sidecars"),
        pytest.param(pod(container(cpu=1), init=[container("i", cpu=5), container("s", cpu=2, sidecar=True)]), 5000, id="and not of later ones"),
        pytest.param(pod(container(cpu=1), overhead={"cpu": "250m"}), 1250, id="overhead comes on top"),
        pytest.param(pod(container(cpu=1), resources={"requests": {"cpu": "700m"}}), 700, id="pod-level requests replace the sum, even a larger one"),
        pytest.param(pod(container(cpu=1), resources={"requests": {"cpu": 2}}, overhead={"cpu": 1}), 3000, id="and overhead still comes on top"),
        pytest.param(pod(container()), 0, id="nothing asked, nothing counted"),
    ],
)  # fmt: skip
def test_cpu_is_summed_by_the_rules_of_pod_requests(body: Json, cpu: int) -> None:
    assert dict(asked(body).amounts).get("cpu", 0) == cpu == (twin.total(body, "cpu") or 0)


@pytest.mark.parametrize(
    ("body", "cpu", "memory"),
    [
        (pod(container()), 100, 200 * MI),
        (pod(container(), container()), 200, 400 * MI),
        (pod(container(cpu=0, memory=0)), 0, 0),
        (pod(container(cpu=1), container(memory=MI)), 1100, 201 * MI),
        (pod(container(cpu=1, memory=MI), init=[container("i")]), 1000, 200 * MI),
        (pod(container(cpu=1), init=[container("s", sidecar=True)]), 1100, 400 * MI),
        (pod(container(), resources={"requests": {"cpu": 1}}), 1000, 200 * MI),
        (pod(container(memory=MI), container(), resources={"requests": {"cpu": 1}}), 1000, MI),
        (pod(container(), container(), resources={"requests": {"cpu": 0, "memory": 5}}), 0, 5),
        (pod(container(), overhead={"cpu": 1}), 1100, 200 * MI),
    ],
)
def test_scores_count_a_default_for_who_asks_nothing_and_keep_an_explicit_0(
    body: Json, cpu: int, memory: int
) -> None:
    found = asked(body)
    assert (found.nonzero_cpu, found.nonzero_memory) == (cpu, memory)
    assert (twin.nonzero(body, "cpu"), twin.nonzero(body, "memory")) == (cpu, memory)


def test_fractions_are_rounded_up_once_all_is_added() -> None:
    body = pod(container(memory="1500m"), container(memory="1500m"), container(memory="100m"))
    assert dict(asked(body).amounts) == {"memory": 4} == twin.everything(body)


def resized(*, reason: str = "", node: str = "a", **status: Any) -> Json:
    conditions = [{"type": "PodResizePending", "reason": reason}] if reason else []
    more = {"containerStatuses": [{"name": "main", **status}], "conditions": conditions}
    return pod(container(cpu=2), status=more, nodeName=node)


def two(status: list[Json], *, more: Json | None = None, **spec: Any) -> Json:
    containers = container("a", cpu=2), container("b", cpu=2)
    return pod(
        *containers, status={"containerStatuses": status, **(more or {})}, nodeName="n", **spec
    )


def granted(name: str, cpu: int, **more: Any) -> Json:
    return {"name": name, "allocatedResources": {"cpu": cpu}, **more}


INFEASIBLE = {"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}
LEVEL = {"resources": {"requests": {"cpu": 4}}}


@pytest.mark.parametrize(
    ("body", "cpu"),
    [
        (resized(), 2000),
        (resized(allocatedResources={"cpu": 3}), 3000),
        (resized(allocatedResources={"cpu": 1}), 2000),
        (resized(allocatedResources={"cpu": 1}, resources={"requests": {"cpu": 4}}), 4000),
        (resized(allocatedResources={"cpu": 1}, reason="Infeasible"), 1000),
        (resized(allocatedResources={"cpu": 1}, reason="Deferred"), 2000),
        (resized(resources={"requests": {"cpu": "1500m"}}, reason="Infeasible"), 1500),
        pytest.param(resized(allocatedResources={"cpu": 3}, node=""), 2000, id="without a node no status counts"),
        pytest.param(two([granted("a", 1), granted("b", 3)]), 4000, id="one grows while another shrinks: sums are compared, not containers"),
        pytest.param(two([granted("a", 1), granted("b", 4)]), 5000, id="what was granted together is more than what is wanted"),
        pytest.param(two([granted("a", 1, resources={"requests": {"cpu": 5}}), granted("b", 1)]), 6000, id="what was granted is in force where nothing else is told"),
        pytest.param(two([granted("a", 1)], more=INFEASIBLE), 1000, id="what can never be granted counts for nobody, told of or not"),
        pytest.param(pod(container(cpu=1), init=[container("i", cpu=2)], nodeName="n", status={"initContainerStatuses": [granted("i", 5)]}), 5000, id="init containers are resized too"),
        pytest.param(two([granted("a", 9)], more={"allocatedResources": {"cpu": 5}, "resources": {"requests": {"cpu": 3}}}), 5000, id="what the status says of the pod stands for its containers"),
        pytest.param(two([granted("a", 9)], more={"allocatedResources": {"cpu": 5}}), 11000, id="where it says both"),
        pytest.param(two([], more={"allocatedResources": {"cpu": 5}, "resources": {"requests": {"cpu": 3}}}, **LEVEL), 5000, id="pod-level requests are resized as well"),
        pytest.param(two([], more={"resources": {"requests": {"cpu": 1}}, **INFEASIBLE}, **LEVEL), 1000, id="and dropped where they can never be granted"),
        pytest.param(two([granted("a", 9)], **LEVEL), 4000, id="of containers they ask nothing"),
    ],
)  # fmt: skip
def test_in_place_resize_counts_the_most_of_wanted_granted_and_used(body: Json, cpu: int) -> None:
    assert dict(asked(body).amounts) == {"cpu": cpu} == twin.everything(body)


def test_of_several_conditions_the_first_says_whether_a_resize_can_be_granted() -> None:
    conditions = [{"type": "PodResizePending", "reason": r} for r in ("Deferred", "Infeasible")]
    body = two([granted("a", 1), granted("b", 1)], more={"conditions": conditions})
    assert dict(asked(body).amounts) == {"cpu": 4000} == twin.everything(body)


def test_pod_level_requests_are_read_for_cpu_memory_and_hugepages_only() -> None:
    level = {"cpu": 1, "hugepages-2Mi": "4Mi", "ephemeral-storage": "1Gi", "nvidia.com/gpu": 2}
    body = pod(container(ephemeral_storage=5), resources={"requests": level})
    assert dict(asked(body).amounts) == {"cpu": 1000, "hugepages-2Mi": 4 * MI, names.EPHEMERAL: 5}


def test_the_resource_named_pods_and_zeros_are_not_amounts() -> None:
    assert asked(pod(container(pods=3, cpu=0))).amounts == ()


def test_requests_beyond_any_node_are_capped_so_that_sums_stay_integers() -> None:
    huge = container(memory="9223372036854775807", cpu="1E")
    assert dict(asked(pod(huge, huge)).amounts) == {
        "cpu": requests.AMOUNT_MAX,
        "memory": requests.AMOUNT_MAX,
    }


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (pod(container(), container(cpu="x")), "spec.containers[1].resources.requests[cpu]"),
        (pod(container(), init=[container(memory="-1")]), "spec.initContainers[0].resources.requests[memory]"),
        (pod(container(), overhead={"cpu": "x"}), "spec.overhead[cpu]"),
        (pod(container(), resources={"requests": {"cpu": "x"}}), "spec.resources.requests[cpu]"),
        (resized(allocatedResources={"cpu": "x"}), "status.containerStatuses[cpu]"),
    ],
)  # fmt: skip
def test_a_malformed_quantity_is_refused_by_field(body: Json, field: str) -> None:
    with pytest.raises(BadInput) as refused:
        asked(body)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("of", "limits", "field"),
    [
        # As the API server fills in what was written as a limit alone.
        ({"a/b": "-5"}, {"a/b": "-5"}, "limits[a/b]"),
        ({"a/b": "-5"}, {"a/b": "5"}, "requests[a/b]"),
        ({"a/b": "-5"}, {"c/d": "-5"}, "requests[a/b]"),
        ({"a/b": "-5"}, {}, "requests[a/b]"),
    ],
)
def test_a_mistake_in_a_limit_that_stands_for_the_request_is_one_of_the_limit(
    of: Json, limits: Json, field: str
) -> None:
    one = {"name": "c", "resources": {"requests": of, "limits": limits}}
    for body, part in ((pod(one), "containers"), (pod(container(), init=[one]), "initContainers")):
        with pytest.raises(BadInput) as refused:
            asked(body)
        assert refused.value.field == f"spec.{part}[0].resources.{field}"


RESOURCES = ["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/x"]
amounts = st.dictionaries(
    st.sampled_from(RESOURCES), st.sampled_from([0, 1, "100m", "2Gi", "0.5", "1E"]), max_size=4
)
maybe = st.none() | st.just("Always")


@st.composite
def bodies(draw: st.DrawFn) -> Json:
    serial = iter(range(99))

    def one(*, init: bool) -> Json:
        body: Json = {"name": f"c{next(serial)}", "resources": {"requests": draw(amounts)}}
        if init and draw(maybe):
            body["restartPolicy"] = "Always"
        return body

    spec: Json = {"containers": [one(init=False) for _ in range(draw(st.integers(1, 3)))]}
    spec["initContainers"] = [one(init=True) for _ in range(draw(st.integers(0, 4)))]
    if draw(st.booleans()):
        spec["resources"] = {"requests": draw(amounts)}
    if draw(st.booleans()):
        spec["overhead"] = draw(amounts)
    if draw(st.booleans()):
        spec["nodeName"] = "n"
    maps = st.none() | amounts
    status: Json = {
        where: [
            {"name": name, **given}
            for name in draw(st.lists(st.sampled_from(["c0", "c1", "c2"]), max_size=3))
            if (given := resizes(draw(maps), draw(maps)))
        ]
        for where in ("containerStatuses", "initContainerStatuses")
    }
    status |= resizes(draw(maps), draw(maps))
    reasons = draw(st.lists(st.sampled_from(["Infeasible", "Deferred"]), max_size=2))
    status["conditions"] = [{"type": "PodResizePending", "reason": one} for one in reasons]
    return {"metadata": {"name": "p"}, "spec": spec, "status": status}


def resizes(allocated: Json | None, requests: Json | None) -> Json:
    found: Json = {} if allocated is None else {"allocatedResources": allocated}
    return found if requests is None else found | {"resources": {"requests": requests}}


@given(bodies())
@settings(max_examples=slices.count_examples(500))
def test_any_pod_asks_what_the_rules_say_one_resource_at_a_time(body: Json) -> None:
    found = asked(body)
    assert dict(found.amounts) == twin.everything(body)
    assert found.nonzero_cpu == twin.nonzero(body, "cpu")
    assert found.nonzero_memory == twin.nonzero(body, "memory")


def key(body: Json) -> bytes:
    return templates.make_key(msgspec.convert(copy.deepcopy(body), wire.Pod))


def changed(body: Json, **parts: Json) -> Json:
    result = copy.deepcopy(body)
    for section, fields in parts.items():
        result[section] |= fields
    return result


SIZED = {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "500m"}}]}
BASE = pod(container(cpu=1), volumes=[{"name": "token-a", "projected": {}}])


@pytest.mark.parametrize(
    "parts",
    [
        {"metadata": {"name": "q", "uid": "7", "namespace": "n", "labels": {"a": "b"}}},
        {"metadata": {"annotations": {"some": "note", names.HAMI_ALLOCATED: "x"}}},
        {"spec": {"nodeName": "a"}},
        {"spec": {"priority": 7, "priorityClassName": "gold"}},
        {"spec": {"schedulingGates": [{"name": "g"}], "schedulerName": "other"}},
        {"spec": {"schedulingGroup": {"podGroupName": "g"}}},
        {"spec": {"volumes": [{"name": "token-b", "projected": {}}]}},
        {"spec": {"serviceAccountName": "s", "hostname": "h", "terminationGracePeriodSeconds": 1}},
        {"status": {"phase": "Running", "containerStatuses": [{"name": "main", "ready": True}]}},
        {"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}},
        {"status": INFEASIBLE},
        {"status": SIZED},
        {"spec": {"resourceClaims": [{"name": "c"}]}},
    ],
)
def test_pods_that_differ_in_what_is_their_own_are_of_one_template(parts: Json) -> None:
    assert key(changed(BASE, **parts)) == key(BASE)


@pytest.mark.parametrize(
    "parts",
    [
        *({"metadata": {"annotations": {note: "x"}}} for note in sorted(names.STEERING)),
        {"spec": {"nodeSelector": {"a": "b"}}},
        {"spec": {"tolerations": [{"operator": "Exists"}]}},
        {"spec": {"overhead": {"cpu": 1}}},
        {"spec": {"resources": {"requests": {"cpu": 1}}}},
        {"spec": {"containers": [container(cpu=2)]}},
        {"spec": {"containers": [make.container(requests={"cpu": 1}, host_ports=[80])]}},
        {"spec": {"initContainers": [container("i", sidecar=True)]}},
        {"spec": {"affinity": {"nodeAffinity": {}}}},
        {"spec": {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}},
    ],
)
def test_pods_that_differ_in_what_decides_placement_are_of_two_templates(parts: Json) -> None:
    assert key(changed(BASE, **parts)) != key(BASE)


@pytest.mark.parametrize(
    "status",
    [
        SIZED,
        INFEASIBLE,
        SIZED | INFEASIBLE,
        {"resources": {}},
        {"allocatedResources": {"cpu": 2}, "resources": {"requests": {"cpu": 2}}},
    ],
)
def test_what_resizing_says_of_a_pod_with_a_node_makes_another_template(status: Json) -> None:
    there = changed(BASE, spec={"nodeName": "a"})
    keys = {key(changed(there, status=more)) for more in ({}, status, SIZED | {"phase": "Running"})}
    assert len(keys) == (2 if status == SIZED else 3)


def test_reading_the_key_leaves_the_pod_as_it_was() -> None:
    body = changed(BASE, spec={"nodeName": "a", "priority": 7, "schedulerName": "s"}, status=SIZED)
    decoded = msgspec.convert(body, wire.Pod)
    templates.make_key(decoded)
    assert decoded == msgspec.convert(body, wire.Pod)
