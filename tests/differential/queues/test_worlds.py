"""Random worlds are the same for the same seed, are as Kueue allows them, and ask about all there is."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.differential.queues.slices import REPLACES
from tests.differential.queues.worlds import World, build

Json = dict[str, Any]
WORLDS = [build(seed, is_fair=bool(seed % 2)) for seed in range(80)]


def of_kind(world: World, kind: str) -> dict[str, Json]:
    return {one["metadata"]["name"]: one for one in world.objects if one["kind"] == kind}


def created(world: World) -> list[Json]:
    return [one for step in world.steps for one in step.created]


def groups(spec: Json) -> list[tuple[tuple[str, ...], list[str]]]:
    return [
        (tuple(group["coveredResources"]), [one["name"] for one in group["flavors"]])
        for group in spec.get("resourceGroups", ())
    ]


def test_a_seed_is_a_world() -> None:
    assert build(7) == build(7)
    assert build(7) != build(8)
    assert build(7).objects != build(7, is_fair=True).objects


def test_no_two_workloads_came_at_the_same_time_or_are_called_the_same() -> None:
    for world in WORLDS:
        for key in ("name", "uid", "creationTimestamp"):
            values = [one["metadata"][key] for one in created(world)]
            assert len({*values}) == len(values)
        times = [one["metadata"]["creationTimestamp"] for one in created(world)]
        assert times == sorted(times)


def test_with_slices_the_rest_of_a_world_is_the_same() -> None:
    found: Counter[str] = Counter()
    for seed in range(30):
        plain, world = build(seed), build(seed, has_slices=True)
        assert world == build(seed, has_slices=True)
        assert world.objects == plain.objects
        there: dict[str, Json] = {}
        for step, without in zip(world.steps, plain.steps, strict=True):
            for name, counts in step.scaled:
                for one in there[name]["spec"]["podSets"]:
                    assert 1 <= counts.get(one["name"], 1) <= one["count"]
                found["scaled"] += 1
            assert step.finished == without.finished
            names = [one["metadata"]["name"] for one in step.created]
            assert names[: len(without.created)] == [
                one["metadata"]["name"] for one in without.created
            ]
            for one in step.created[len(without.created) :]:
                old = one["metadata"]["annotations"][REPLACES].removeprefix("default/")
                assert there[old]["spec"]["queueName"] == one["spec"]["queueName"]
                found["grown"] += 1
            there |= {one["metadata"]["name"]: one for one in step.created}
        times = [one["metadata"]["creationTimestamp"] for one in created(world)]
        assert times == sorted({*times})
    assert found["scaled"] > 30
    assert found["grown"] > 30


def test_what_is_named_is_there() -> None:
    for world in WORLDS:
        flavors, queues = of_kind(world, "ResourceFlavor"), of_kind(world, "ClusterQueue")
        for kind in ("Cohort", "ClusterQueue"):
            for one in of_kind(world, kind).values():
                assert {
                    name for _, names in groups(one["spec"]) for name in names
                } <= flavors.keys()
        locals_ = of_kind(world, "LocalQueue")
        assert {one["spec"]["clusterQueue"] for one in locals_.values()} <= queues.keys()
        assert {one["spec"]["queueName"] for one in created(world)} <= locals_.keys()
        there: set[str] = set()
        for step in world.steps:
            assert {*step.finished, *step.stopped} <= there
            there |= {one["metadata"]["name"] for one in step.created}
            for one in step.changed:
                old = of_kind(world, one["kind"])[one["metadata"]["name"]]
                assert groups(old["spec"]) == groups(one["spec"])


def test_quotas_are_as_kueues_webhooks_want_them() -> None:
    for world in WORLDS:
        for kind, above in (("Cohort", "parentName"), ("ClusterQueue", "cohortName")):
            for one in of_kind(world, kind).values():
                has_above = above in one["spec"]
                for group in one["spec"].get("resourceGroups", ()):
                    for flavor in group["flavors"]:
                        names = [quota["name"] for quota in flavor["resources"]]
                        assert names == group["coveredResources"]
                        limits = {key for quota in flavor["resources"] for key in quota}
                        assert has_above or limits == {"name", "nominalQuota"}


def test_all_there_is_occurs() -> None:
    found: Counter[str] = Counter()
    for world in WORLDS:
        queues = of_kind(world, "ClusterQueue").values()
        for one in (queue["spec"] for queue in queues):
            preemption = one["preemption"]
            found.update(
                f"{key}={preemption[key]}" for key in preemption if isinstance(preemption[key], str)
            )
            found["threshold"] += "maxPriorityThreshold" in preemption.get("borrowWithinCohort", {})
            found[one["queueingStrategy"]] += 1
            found[str(one.get("flavorFungibility", {}).get("preference"))] += 1
            found["groups"] += len(one["resourceGroups"]) > 1
            found["weightless"] += one.get("fairSharing", {}).get("weight") == "0"
            for key in ("borrowingLimit", "lendingLimit"):
                found[key] += key in str(one)
        cohorts = of_kind(world, "Cohort").values()
        found["own quota"] += any("resourceGroups" in one["spec"] for one in cohorts)
        found["third level"] += any(
            one["metadata"]["name"].startswith("cohort-2") for one in cohorts
        )
        for one in created(world):
            text = str(one)
            for key in (
                "minCount",
                "nodeSelector",
                "nodeAffinity",
                "tolerations",
                "priorityClassRef",
            ):
                found[key] += key in text
        for step in world.steps:
            found["finished"] += bool(step.finished)
            found["stopped"] += bool(step.stopped)
            found.update(f"changed {one['kind']}" for one in step.changed)
            found.update(str(one["spec"].get("stopPolicy")) for one in step.changed)
    rare = {key: n for key, n in found.items() if n < 3}
    assert not rare
    assert {"HoldAndDrain", "Hold", "None", "changed Cohort", "third level"} <= found.keys()
    assert {"BorrowingOverPreemption", "PreemptionOverBorrowing", "weightless"} <= found.keys()
