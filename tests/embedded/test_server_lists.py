from typing import Any

import pytest

from scheduler.embedded.cluster import Cluster
from tests.embedded.conftest import Api


def names(reply: Any) -> list[str]:
    return [item["metadata"]["name"] for item in reply["items"]]


async def test_items_of_a_built_in_list_carry_neither_kind_nor_version(api: Api) -> None:
    made = await api.pod()
    reply = await api.get(api.pods)
    assert (reply["kind"], reply["apiVersion"]) == ("PodList", "v1")
    assert "kind" not in reply["items"][0]
    assert "apiVersion" not in reply["items"][0]
    assert {"kind": "Pod", "apiVersion": "v1", **reply["items"][0]} == made
    assert int(reply["metadata"]["resourceVersion"]) >= int(made["metadata"]["resourceVersion"])


async def test_lists_are_in_order_of_namespace_and_name(api: Api) -> None:
    for name in ("b", "c", "a"):
        await api.pod(name)
    assert names(await api.get(api.pods)) == ["a", "b", "c"]
    everywhere = await api.get("/api/v1/pods")
    keys = [(one["metadata"]["namespace"], one["metadata"]["name"]) for one in everywhere["items"]]
    assert keys == sorted(keys)
    assert (api.namespace, "a") in keys


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("app=x", ["a", "b"]),
        ("app==x", ["a", "b"]),
        ("app!=x", ["c", "d"]),
        ("app", ["a", "b", "c"]),
        ("!app", ["d"]),
        ("app in (x, y)", ["a", "b", "c"]),
        ("app notin (x)", ["c", "d"]),
        ("app=x,size>1", ["b"]),
        ("size<2", ["a"]),
        ("app=x,size notin (1),app", ["b"]),
        ("example.dev/tier=front", ["c"]),
        ("app=", []),
    ],
)
async def test_label_selectors(api: Api, selector: str, expected: Any) -> None:
    for name, labels in (
        ("a", {"app": "x", "size": "1"}),
        ("b", {"app": "x", "size": "2"}),
        ("c", {"app": "y", "example.dev/tier": "front"}),
        ("d", None),
    ):
        await api.pod(name, labels=labels)
    assert names(await api.get(api.pods, labelSelector=selector)) == expected


@pytest.mark.parametrize("selector", ["a=(", "a in x", "=b", "a b"])
async def test_label_selectors_that_make_no_sense_are_a_400(api: Api, selector: str) -> None:
    assert (await api.get(api.pods, labelSelector=selector)).code == 400


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=a", ["a"]),
        ("metadata.name!=a", ["b", "c"]),
        ("spec.nodeName=n1", ["b"]),
        ("spec.nodeName==n1", ["b"]),
        ("spec.nodeName=", ["a"]),
        ("spec.nodeName!=", ["b", "c"]),
        ("spec.schedulerName=evenkeel", ["a", "b"]),
        ("spec.schedulerName=evenkeel,spec.nodeName=", ["a"]),
        ("status.phase!=Succeeded", ["a", "b"]),
        ("status.phase=Pending,metadata.name!=b", ["a"]),
        ("spec.restartPolicy=Always", ["a", "b", "c"]),
        ("metadata.name=a,metadata.name=b", []),
        ("spec.hostNetwork=false", ["a", "b", "c"]),
    ],
)
async def test_field_selectors(api: Api, selector: str, expected: Any) -> None:
    await api.pod("a", schedulerName="evenkeel")
    await api.pod("b", schedulerName="evenkeel")
    await api.pod("c")
    await api.bind("b", "n1")
    await api.bind("c", "n2")
    await api.merge(f"{api.pods}/c/status", {"status": {"phase": "Succeeded"}})
    assert names(await api.get(api.pods, fieldSelector=selector)) == expected


async def test_fields_that_a_kind_cannot_be_selected_by_are_refused(api: Api) -> None:
    reply = await api.get(api.pods, fieldSelector="spec.foo=x")
    assert (reply.code, reply["reason"]) == (400, "BadRequest")
    assert "field label not supported: spec.foo" in reply["message"]
    path = "/api/v1/nodes"
    assert (await api.get(path, fieldSelector="spec.unschedulable=true")).code == 200
    assert (await api.get(path, fieldSelector="spec.nodeName=x")).code == 400


async def test_pages_show_one_moment(api: Api) -> None:
    for name in "abcde":
        await api.pod(name)
    first = await api.get(api.pods, limit=2)
    assert names(first) == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 3
    await api.delete(f"{api.pods}/c")
    await api.pod("bb")
    second = await api.get(api.pods, limit=2, **{"continue": first["metadata"]["continue"]})
    assert names(second) == ["c", "d"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    third = await api.get(api.pods, limit=2, **{"continue": second["metadata"]["continue"]})
    assert names(third) == ["e"]
    assert "continue" not in third["metadata"]
    assert "remainingItemCount" not in third["metadata"]


async def test_pages_count_what_is_selected(api: Api) -> None:
    for name in "abcdef":
        await api.pod(name, labels={"odd": "yes" if name in "ace" else "no"})
    reply = await api.get(api.pods, limit=2, labelSelector="odd=yes")
    assert names(reply) == ["a", "c"]
    token = {"continue": reply["metadata"]["continue"]}
    reply = await api.get(api.pods, limit=2, labelSelector="odd=yes", **token)
    assert names(reply) == ["e"]


async def test_a_token_of_a_compacted_moment_is_gone(api: Api, cluster: Cluster) -> None:
    for name in "abc":
        await api.pod(name)
    first = await api.get(api.pods, limit=1)
    await api.pod("d")
    cluster.store.compact("pods")
    reply = await api.get(api.pods, limit=1, **{"continue": first["metadata"]["continue"]})
    assert (reply.code, reply["reason"]) == (410, "Expired")


async def test_a_token_that_is_none_is_a_400(api: Api) -> None:
    reply = await api.get(api.pods, limit=1, **{"continue": "nonsense"})
    assert reply.code == 400


async def test_an_exact_version_shows_the_past(api: Api) -> None:
    made = await api.pod("a")
    await api.pod("b")
    await api.merge(f"{api.pods}/a", {"metadata": {"labels": {"x": "y"}}})
    version = made["metadata"]["resourceVersion"]
    reply = await api.get(api.pods, resourceVersion=version, resourceVersionMatch="Exact")
    assert names(reply) == ["a"]
    assert "labels" not in reply["items"][0]["metadata"]
    assert reply["metadata"]["resourceVersion"] == version
    newer = await api.get(api.pods, resourceVersion=version, resourceVersionMatch="NotOlderThan")
    assert names(newer) == ["a", "b"]


async def test_a_future_version_times_out(api: Api) -> None:
    future = int((await api.get(api.pods))["metadata"]["resourceVersion"]) + 100_000
    reply = await api.get(api.pods, resourceVersion=future)
    assert (reply.code, reply["reason"]) == (504, "Timeout")
    assert reply["message"].startswith(f"Timeout: Too large resource version: {future}, current: ")
    assert reply["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (
            {"resourceVersionMatch": "Exact"},
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
            'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        ),
        (
            {"resourceVersionMatch": "Odd", "resourceVersion": "1"},
            'Unsupported value: "Odd": supported values: "Exact", "NotOlderThan", ""',
        ),
        ({"sendInitialEvents": "true"}, "sendInitialEvents is forbidden for list"),
    ],
)
async def test_options_that_make_no_sense_are_refused(api: Api, query: Any, text: str) -> None:
    reply = await api.get(api.pods, **query)
    assert reply.code == 422
    assert text in reply["message"]


@pytest.mark.parametrize(("watch", "code"), [("false", 400), ("true", 500)])
async def test_a_version_that_is_no_number_is_refused(api: Api, watch: Any, code: int) -> None:
    reply = await api.get(api.pods, resourceVersion="abc", watch=watch)
    assert reply.code == code
    assert "abc" in reply["message"]
