"""What ``evenkeel explain node`` says of the devices of a node's pools."""

from typing import Any

import jsonschema

from docs.schemas import write
from tests.operator import devices
from tests.unit.claim_objects import CLASS, OLD, node_of, pod_of, used
from tests.unit.test_explain import answer, said, sentences
from tests.unit.test_explain_claims import pool_with_counters

Json = dict[str, Any]


def explained(name: str, *objects: Json) -> Json:
    found = answer("node", name, objects=[CLASS, *objects])
    jsonschema.validate(found, write.explain())
    return found


def test_devices_are_counted_by_pool_with_who_has_them_and_which_are_tainted() -> None:
    objects = [
        *node_of(
            "n0",
            devices.device("gpu-0"),
            devices.device("gpu-1", taints=OLD),
            devices.device("gpu-2"),
            devices.device("gpu-3"),
        ),
        used("taken", "n0", "gpu-0", "r"),
        used("left", "n0", "gpu-2"),
        pod_of("r", "taken", node="n0"),
    ]
    found = explained("n0", *objects)
    pool = {"driver": devices.DRIVER, "pool": "n0", "devices": 4, "inUse": 2, "free": 1, "tainted": 1}  # fmt: skip
    assert found["pools"] == [pool | {"problem": None}]
    assert {one["name"]: one["canBeHad"] for one in found["devices"]} == {
        "gpu-0": False,
        "gpu-1": True,
        "gpu-2": False,
        "gpu-3": True,
    }
    assert [one["holders"] for one in found["devices"] if one["holders"]] == [
        [{"claim": "default/taken", "pods": ["default/r"]}],
        [{"claim": "default/left", "pods": []}],
    ]
    told = sentences(said("node", "n0", objects=[CLASS, *objects]))
    assert "gpu.example.com/n0: 2 of 4 in use, 1 can be had, 1 tainted" in told
    assert "gpu-2: in use by claim default/left, which no pod on a node has" in told
    assert "gpu-1: taint old=yes:NoSchedule" in told


def test_of_a_gpu_in_parts_it_is_told_what_can_still_be_cut() -> None:
    objects = [*pool_with_counters(), used("taken", "n0", "half", "r"), pod_of("r", "taken", node="n0")]  # fmt: skip
    found = explained("n0", *objects)
    assert found["counters"] == [
        {
            "driver": devices.DRIVER,
            "pool": "n0",
            "set": "gpu-0",
            "counters": {"memory": {"total": "80Gi", "free": "40Gi"}},
            "inUse": ["half"],
            "canBeCut": ["part"],
        }
    ]
    told = sentences(said("node", "n0", objects=[CLASS, *objects]))
    assert "gpu-0: free are memory 40Gi of 80Gi; of it can still be had: part" in told


def test_a_pool_of_which_no_claim_gets_a_device_says_why() -> None:
    pool = {"name": "n0", "generation": 1, "resourceSliceCount": 2}
    objects = node_of("n0", devices.device("gpu-0"), pool=pool)
    (one,) = explained("n0", *objects)["pools"]
    assert (one["devices"], one["problem"]) == (0, "incomplete")
    told = sentences(said("node", "n0", objects=[CLASS, *objects]))
    assert "gpu.example.com/n0: incomplete, so no claim gets a device" in told


def test_what_is_left_of_a_shared_device_is_shown() -> None:
    shared = devices.device("gpu-0", allowMultipleAllocations=True, capacity={"memory": {"value": "80Gi"}})  # fmt: skip
    taken = used("taken", "n0", "gpu-0", "r")
    more = {"shareID": "s", "consumedCapacity": {"memory": "50Gi"}}
    taken["status"]["allocation"]["devices"]["results"][0] |= more
    objects = [*node_of("n0", shared), taken, pod_of("r", "taken", node="n0")]
    (one,) = explained("n0", *objects)["devices"]
    assert one["shared"]
    assert one["capacities"] == [{"name": "memory", "total": "80Gi", "free": "30Gi"}]
    told = sentences(said("node", "n0", objects=[CLASS, *objects]))
    assert "in use by claim default/taken (default/r); 30Gi of 80Gi memory free" in told
