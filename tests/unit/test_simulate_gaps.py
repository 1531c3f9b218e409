"""What is missing among the objects, or makes nothing, is said by ``evenkeel simulate``."""

from typing import Any

from tests.unit import test_explain
from tests.unit.test_simulate_what_if import answer, node, owned, pod, simulate, workload


def test_a_daemon_set_that_no_node_suits_is_named() -> None:
    agent = workload("DaemonSet", "agent")
    agent["spec"]["template"]["spec"]["nodeSelector"] = {"gpu": "yes"}
    result = simulate(objects=[node("a"), agent])
    assert result.exit_code == 0
    assert (
        "refused by every node because of its selector, affinity or taints, so without pods: "
        "1 DaemonSet (default/agent)"
    ) in " ".join(result.stdout.split())
    assert answer(objects=[node("a"), agent])["unsuited"] == {"DaemonSet": ["default/agent"]}
    # One that has a pod has pods; and where there is no node it is that which is said.
    running = owned("p0", "DaemonSet", node="a")
    running["metadata"]["ownerReferences"][0]["name"] = "agent"
    assert answer(objects=[node("a"), running, agent])["unsuited"] == {}
    assert answer(objects=[agent])["unsuited"] == {}
    assert answer(objects=[node("a", labels={"gpu": "yes"}), agent])["unsuited"] == {}


def test_a_storage_class_that_is_missing_is_named_with_who_waits_for_it() -> None:
    claim: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"storageClassName": "gp3", "accessModes": ["ReadWriteOnce"]},
    }
    of_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "gp3"},
        "provisioner": "x",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    stored = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    waits = pod("p", spec={"volumes": stored})
    (warning,) = answer(objects=[node("a"), claim, waits])["warnings"]
    others = [claim | {"metadata": {"name": "d", "namespace": "default"}}, pod("lone")]
    assert (
        warning
        in test_explain.answer("pod", "p", objects=[node("a"), claim, waits, *others])["remarks"]
    )
    assert (
        test_explain.answer("pod", "lone", objects=[node("a"), claim, waits, *others])["remarks"]
        == []
    )
    assert warning.startswith("StorageClass gp3 is not among the objects: ")
    assert "default/p" in warning
    assert answer(objects=[node("a"), claim, of_class, waits])["warnings"] == []
    bound = claim | {"spec": claim["spec"] | {"volumeName": "nope"}}
    for objects in ([node("a"), bound, waits], [node("a"), bound, of_class, waits]):
        (warning,) = answer(objects=objects)["warnings"]
        assert warning == (
            "PersistentVolume nope is not among the objects: pods whose claims name it wait: default/p; "
            "add `persistentvolumes` to the dump"
        )
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "nope"},
        "spec": {"accessModes": ["ReadWriteOnce"]},
    }
    assert answer(objects=[node("a"), bound, volume, waits])["warnings"] == []
    runs = pod("p", node="a", spec={"volumes": stored})
    assert answer(objects=[node("a"), claim, runs])["warnings"] == []
    made = workload("StatefulSet", "db")
    made["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "v"}, "spec": claim["spec"]}]
    (warning,) = answer(objects=[node("a"), made])["warnings"]
    assert "StorageClass gp3" in warning
    assert "default/db-0" in warning


def test_that_pods_without_an_age_come_last_is_said_where_others_have_one() -> None:
    old, young = pod("old"), pod("young")
    old["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    young["metadata"].pop("creationTimestamp", None)
    found = answer(objects=[node("a"), young, old])
    assert [one["name"] for one in found["pods"]] == ["old", "young"]
    (warning,) = found["warnings"]
    assert warning.startswith("1 waiting pod has no creationTimestamp")
    assert "decided first: default/young" in warning
    assert answer(objects=[node("a"), young])["warnings"] == []
    assert answer(objects=[node("a"), old, workload("Job", parallelism=1)])["warnings"] == []


def test_a_dump_without_budgets_says_so_where_pods_must_make_room() -> None:
    low = pod("low", node="a", cpu=2) | {"status": {"phase": "Running"}}
    high = pod("high", cpu=2)
    high["spec"]["priority"] = 9
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    objects = [node("a", cpu=2), low, high]
    found = answer(objects=objects)
    assert [one["name"] for one in found["pods"][0]["victims"]] == ["low"]
    (warning,) = found["warnings"]
    assert warning.startswith("no PodDisruptionBudget is among the objects")
    assert answer(objects=[*objects, budget | {"spec": {}}])["warnings"] == []
    assert answer(objects=objects[:2])["warnings"] == []
