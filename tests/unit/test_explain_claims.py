"""What ``evenkeel explain`` says of pods with ResourceClaims."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api.placement import Mode
from scheduler.engine.questions.explaining import ExplainPod
from tests import slices
from tests.model import allocator_worlds, claim_worlds
from tests.operator import devices
from tests.unit.claim_objects import (
    CLASS,
    MODEL,
    OLD,
    claim,
    explained,
    node_of,
    of_model,
    pod_of,
    used,
)
from tests.unit.test_explain import answer, said, sentences
from tests.unit.test_simulate_claims import make_extended_class, make_object, make_pod_of

Json = dict[str, Any]


def list_refusals(found: Json) -> list[tuple[str, str, int]]:
    return [
        (one["why"], one["text"], one["devices"])
        for request in found["nearest"]["claims"]
        for one in request["refusals"]
    ]


def test_each_device_is_told_by_what_it_is_refused_and_the_nearest_by_what_it_lacks() -> None:
    memory = {"memory": {"value": "80Gi"}}
    gib = devices.request(
        selectors=[
            {
                "cel": {
                    "expression": f"device.attributes['{devices.DRIVER}'].model.matches('^new[0-9]*$')"
                }
            }
        ]
    )
    objects = [
        *node_of(
            "n0",
            devices.device("gpu-0", attributes=of_model("new")),
            devices.device("gpu-1", attributes=of_model("old")),
            devices.device("gpu-2", attributes=of_model("old")),
            devices.device("gpu-3", attributes=of_model("new"), taints=OLD),
            devices.device("gpu-4", capacity=memory),
        ),
        *node_of("n1", devices.device("nic-0"), driver="nic.example.com"),
        used("taken", "n0", "gpu-0", "r"),
        pod_of("r", "taken", node="n0"),
        claim("mine", gib),
        pod_of("p", "mine"),
    ]
    found = explained(*objects)
    expression = f"device.attributes['{devices.DRIVER}'].model.matches('^new[0-9]*$')"
    (near,) = found["nearest"]["claims"]
    assert (near["claim"], near["request"], near["count"]) == ("mine", "gpu", 1)
    assert (near["devices"], near["wouldDo"]) == (5, 0)
    assert len(expression) > 60
    *others, (why, text, n) = list_refusals(found)
    assert others == [
        ("unlike", f"selector #0 of claim of the pod: {expression[:59]}…", 2),
        ("inUse", "in use", 1),
        ("taint", "taint old=yes:NoSchedule is not tolerated", 1),
    ]
    assert (why, n) == ("selectorFails", 1)
    assert text.startswith(
        "claim of the pod: selector #0 on device gpu.example.com/n0/gpu-4: CEL runtime error: no such key: model"
    )
    holders = near["refusals"][1]["holders"]
    assert holders == [{"claim": "default/taken", "pods": ["default/r"]}]
    assert near["nearest"] == {"device": "gpu-0", "lacks": "in use"}
    (whole,) = found["claims"][0]["requests"]
    assert (whole["devices"], whole["wouldDo"], whole["most"]) == (6, 0, None)
    assert whole["refused"] == {"inUse": 1, "taint": 1, "unlike": 3, "selectorFails": 1}
    told = sentences(said("pod", "p", objects=[CLASS, *objects]))
    assert (
        "claim mine, request gpu: 1 device of class gpu 0 of 6 devices on all nodes would do"
        in told
    )
    assert "gpu-0: in use by claim default/taken (default/r)" in told
    assert "gpu-1, gpu-2: selector #0 of claim of the pod" in told
    assert "2. tolerate old=yes:NoSchedule in request gpu of claim mine: it fits on n0" in told
    assert "3. end pod default/r (priority 0): it fits on n0" in told


def partition(name: str, amount: str) -> Json:
    draws = [{"counterSet": "gpu-0", "counters": {"memory": {"value": amount}}}]
    return devices.device(name, attributes=of_model(name), consumesCounters=draws)


def pool_with_counters() -> list[Json]:
    """A node with a GPU of 80 Gi that is cut: the counters are in a slice of their own."""
    pool = {"name": "n0", "generation": 1, "resourceSliceCount": 2}
    made = node_of(
        "n0",
        partition("whole", "80Gi"),
        partition("half", "40Gi"),
        partition("part", "20Gi"),
        pool=pool,
    )
    sets = [{"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}]
    spec = {"driver": devices.DRIVER, "nodeName": "n0", "pool": pool, "sharedCounters": sets}
    return [*made, make_object("ResourceSlice", {"metadata": {"name": "sets"}, "spec": spec})]  # fmt: skip


def test_counters_are_told_by_set_with_what_is_needed_and_who_draws_on_them() -> None:
    model = f"device.attributes['{devices.DRIVER}'].model == 'whole'"
    wanted = devices.request(selectors=[{"cel": {"expression": model}}])
    objects = [
        *pool_with_counters(),
        used("taken", "n0", "part", "r"),
        pod_of("r", "taken", node="n0"),
        claim("mine", wanted),
        pod_of("p", "mine"),
    ]
    (near,) = explained(*objects)["nearest"]["claims"]
    counters = next(one for one in near["refusals"] if one["why"] == "counters")
    assert counters["text"] == "counter memory of gpu-0: requires 80Gi, 60Gi free of 80Gi"
    assert counters["names"] == ["whole"]
    assert counters["holders"] == [{"claim": "default/taken", "pods": ["default/r"]}]
    assert near["nearest"]["device"] == "whole"


def test_the_nearest_of_the_partitions_is_the_one_that_lacks_least() -> None:
    objects = [
        *pool_with_counters(),
        used("taken", "n0", "part", "r"),
        used("other", "n0", "half", "r"),
        pod_of("r", "taken", "other", node="n0"),
        claim("mine", devices.request(count=2)),
        pod_of("p", "mine"),
    ]
    objects[2]["metadata"]["name"] = "sets"
    (near,) = explained(*objects)["nearest"]["claims"]
    assert near["nearest"]["device"] == "whole"
    assert near["nearest"]["lacks"] == "counter memory of gpu-0: requires 80Gi, 20Gi free of 80Gi"


def test_what_is_left_of_a_shared_device_is_told_by_capacity() -> None:
    half = devices.request(capacity={"requests": {"memory": "50Gi"}})
    shared = devices.device(
        "gpu-0", allowMultipleAllocations=True, capacity={"memory": {"value": "80Gi"}}
    )
    taken = claim("taken", half)
    given = devices.allocation("n0", "gpu-0")
    given["devices"]["results"][0] |= {"shareID": "s", "consumedCapacity": {"memory": "50Gi"}}
    consumers = [{"resource": "pods", "name": "r", "uid": "pod-r"}]
    taken["status"] = {"allocation": given, "reservedFor": consumers}
    objects = [
        *node_of("n0", shared),
        taken,
        pod_of("r", "taken", node="n0"),
        claim("mine", half),
        pod_of("p", "mine"),
    ]
    found = explained(*objects)
    assert list_refusals(found) == [
        ("capacity", "capacity memory: requires 50Gi, 30Gi free of 80Gi", 1)
    ]
    assert (
        "request 30Gi of capacity memory instead of 50Gi in request gpu of claim mine"
        in (found["advice"][0]["text"])
    )


def test_the_node_with_the_most_devices_that_would_do_is_the_closest() -> None:
    objects = [
        *node_of("a", devices.device("gpu-0")),
        *node_of("b", devices.device("gpu-0"), devices.device("gpu-1")),
        *node_of("c"),
        claim("mine", devices.request(count=3)),
        pod_of("p", "mine"),
    ]
    found = explained(*objects)
    assert found["nearest"]["node"] == "b"
    assert found["claims"][0]["requests"][0]["most"] == {"node": "b", "wouldDo": 2}
    assert [one["text"] for one in found["advice"]] == [
        "request 2 devices instead of 3 in request gpu of claim mine: it fits on b"
    ]


def test_a_constraint_is_told_with_how_many_devices_meet_it() -> None:
    objects = [
        *node_of(
            "n0", *(devices.device(f"gpu-{one}", attributes=of_model(one)) for one in ("a", "b"))
        ),
        claim("mine", devices.request(count=2), constraints=[{"matchAttribute": MODEL}]),
        pod_of("p", "mine"),
    ]
    found = explained(*objects)
    (one,) = found["nearest"]["constraints"]
    assert (one["devices"], one["wouldDo"], one["distinct"], one["without"]) == (2, 1, False, 0)
    assert one["text"] == (
        f"constraint #0 (matchAttribute {MODEL}): of the devices that would do at most 1 have one value, a; "
        "2 are requested"
    )
    told = sentences(said("pod", "p", objects=[CLASS, *objects]))
    assert f"claim mine, {one['text']}" in told


def test_requests_that_do_not_fit_together_are_told_so() -> None:
    objects = [
        *pool_with_counters(),
        claim("mine", devices.request(count=3)),
        pod_of("p", "mine"),
    ]
    told = sentences(said("pod", "p", objects=[CLASS, *objects]))
    assert "For each request by itself there are enough devices, but not for all together." in told


def test_a_pod_that_runs_has_its_devices_and_one_that_fits_those_it_would_get() -> None:
    objects = [
        *node_of("n0", devices.device("gpu-0"), devices.device("gpu-1")),
        used("taken", "n0", "gpu-0", "p"),
        pod_of("p", "taken", node="n0"),
        claim("mine"),
        pod_of("q", "mine"),
    ]
    given = {"request": "gpu", "driver": devices.DRIVER, "pool": "n0", "admin": False, "consumed": {}}  # fmt: skip
    found = explained(*objects)
    assert found["claims"][0]["devices"] == [given | {"name": "gpu-0"}]
    told = sentences(said("pod", "p", objects=[CLASS, *objects]))
    assert f"claim taken has device gpu-0 of {devices.DRIVER}/n0" in told
    found = answer("pod", "q", objects=[CLASS, *objects])
    assert found["now"]["claims"] == [given | {"name": "gpu-1"}]
    told = sentences(said("pod", "q", objects=[CLASS, *objects]))
    assert f"it would go to n0 with device gpu-1 of {devices.DRIVER}/n0." in told


def test_extended_resources_are_told_by_their_resource() -> None:
    objects = [
        make_extended_class(),
        *node_of("n0", devices.device("gpu-0")),
        make_pod_of("p", 2),
    ]
    found = answer("pod", "p", objects=objects)
    (near,) = found["nearest"]["claims"]
    assert (near["claim"], near["resource"], near["count"]) == (None, "example.com/gpu", 2)
    assert near["wouldDo"] == 1
    told = sentences(said("pod", "p", objects=objects))
    assert (
        "extended resources, request container-0-request-0 (example.com/gpu): 1 of 1 device" in told
    )


@given(st.integers(0, 2**30))
@settings(max_examples=slices.count_examples(300), deadline=None)
def test_a_request_for_one_device_fits_if_and_only_if_one_is_said_to_suit(seed: int) -> None:
    world = allocator_worlds.draw(seed)
    (one, *_) = world["claims"]
    requests = one["spec"]["devices"]["requests"][:1]
    if "exactly" in requests[0]:
        requests[0]["exactly"] |= {"allocationMode": "ExactCount", "count": 1}
    one["spec"]["devices"] = {"requests": requests}
    world["claims"] = [one]
    engine = claim_worlds.make_engine(world, Mode.KEEL)
    found = engine.ask(ExplainPod(claim_worlds.make_pod(world), "", {}, frozenset()))
    counted = [each for told in found["claims"] for each in told["requests"]]
    for each in counted:
        assert each["wouldDo"] + sum(each["refused"].values()) == each["devices"]
    if counted and len(counted) == 1:
        assert (counted[0]["wouldDo"] > 0) == (found["nodes"]["fitting"] > 0)
