"""What ``evenkeel simulate`` says of groups of pods."""

from typing import Any

from tests.unit.test_simulate_what_if import answer, node, pod, simulate

Json = dict[str, Any]
_LABEL = "pod-group.scheduling.sigs.k8s.io"


def gang(name: str, minimum: int) -> Json:
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": minimum},
    }


def members(name: str, count: int, **figures: Any) -> list[Json]:
    return [pod(f"{name}-{i}", labels={_LABEL: name}, **figures) for i in range(count)]


def in_racks() -> list[Json]:
    """A group that fits in one rack, and one that fits in none."""
    levels = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Topology",
        "metadata": {"name": "t"},
        "spec": {"levels": [{"nodeLabel": "rack"}]},
    }
    nodes = [node("a", cpu=2, labels={"rack": "r1"}), node("b", cpu=4, labels={"rack": "r2"})]
    wish = {"kueue.x-k8s.io/podset-required-topology": "rack"}
    pods = [*members("fits", 4, annotations=wish), *members("large", 3, annotations=wish)]
    return [*nodes, levels, gang("fits", 4), gang("large", 3), *pods]


def test_each_group_has_a_row_that_says_where_it_went_or_comes_closest() -> None:
    fits, large = answer(objects=in_racks())["groups"]
    assert large["message"].startswith(
        "PodGroup default/large: 2 of the 3 pods that must be placed at once fit in rack r1"
    )
    assert fits == {
        "kind": "PodGroup",
        "namespace": "default",
        "name": "fits",
        "members": 4,
        "minimum": 4,
        "placed": 4,
        "state": "placed",
        "domain": {"label": "rack", "values": ["r2"]},
        "message": "PodGroup default/fits: 4 of 4 pods placed in rack r2",
    }
    assert large == {
        "kind": "PodGroup",
        "namespace": "default",
        "name": "large",
        "members": 3,
        "minimum": 3,
        "placed": 0,
        "state": "waits",
        "domain": {"label": "rack", "values": ["r1"]},
        "message": large["message"],
    }


def test_people_read_the_group_and_its_domain_beside_its_pods() -> None:
    for more in ((), ("-o", "wide")):
        text = simulate(*more, objects=in_racks()).stdout
        assert "PodGroup default/fits in rack r2" in text
        assert "2 groups: 1 placed, 1 not placed" in text
    text = simulate("-o", "markdown", objects=in_racks()).stdout
    assert "3 of 7 pods do not fit; 1 of 2 groups not placed" in text
    assert "| 4 | PodGroup default/fits in rack r2 | 4 | 4 | placed |" in text
    assert "| 3 | PodGroup default/large in rack r1 | 0 | 3 | waits |" in text
    assert "group" not in simulate(objects=[node("a"), pod("alone")]).stdout


def test_a_group_that_is_not_placed_fails_where_that_is_asked_for() -> None:
    fail = "--fail-if-pending"
    assert simulate(fail, objects=in_racks()).exit_code == 1
    held = simulate(fail, objects=[node("a"), gang("g", 3), *members("g", 2)])
    assert held.exit_code == 1
    assert "1 group: 1 held" in held.stdout
    assert simulate(fail, objects=[node("a"), gang("g", 2), *members("g", 2)]).exit_code == 0


def test_victims_of_a_group_are_named_with_the_nodes_that_they_leave() -> None:
    low = [pod(f"low-{name}", node=name, cpu=8) for name in "ab"]
    high = members("g", 2, cpu=8, priority=9)
    objects = [node("a"), node("b"), *low, gang("g", 2), *high]
    rows = answer(objects=objects)["pods"]
    found = {one["name"]: one["node"] for row in rows for one in row["victims"]}
    assert found == {"low-a": "a", "low-b": "b"}
    assert {row["name"]: row["nominated"] for row in rows} == {"g-0": "a", "g-1": "b"}
    text = simulate(objects=objects).stdout
    assert "default/low-a is evicted from a" in text
    assert "default/low-b is evicted from b" in text
