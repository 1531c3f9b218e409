"""Custom kinds: served at once, defaulted, pruned, and refused in the real server's words."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.embedded.conftest import Api

GROUP = "test.evenkeel.dev"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SPEC = {
    "type": "object",
    "required": ["nodePolicy"],
    "properties": {
        "priority": {"type": "integer", "minimum": 0, "maximum": 100, "default": 5},
        "nodePolicy": {"type": "string", "enum": ["binpack", "spread"]},
        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5, "minLength": 1},
        "tags": {"type": "array", "maxItems": 2, "minItems": 1, "items": {"type": "string"}},
        "labels": {
            "type": "object",
            "maxProperties": 1,
            "additionalProperties": {"type": "string"},
        },
        "terms": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["key"],
            "items": {
                "type": "object",
                "required": ["key"],
                "properties": {
                    "key": {"type": "string"},
                    "weight": {"type": "integer", "multipleOf": 2},
                },
            },
        },
        "port": {"x-kubernetes-int-or-string": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
SCHEMA = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": SPEC,
        "status": {
            "type": "object",
            "properties": {
                "pods": {"type": "integer"},
                "conditions": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
                    },
                },
            },
        },
    },
}


@pytest.fixture
async def widgets(api: Api, unique: Callable[[str], str]) -> str:
    """A kind of the test's own; gives the path of its collection."""
    plural = unique("widgets").replace("-", "")
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": SCHEMA},
        "additionalPrinterColumns": [
            {"name": "Policy", "type": "string", "jsonPath": ".spec.nodePolicy"},
            {
                "name": "Ready",
                "type": "string",
                "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
            },
            {"name": "Priority", "type": "integer", "jsonPath": ".spec.priority", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
    }
    names = {"plural": plural, "kind": plural.capitalize(), "shortNames": [f"w{plural[-8:]}"]}
    body = {
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]},
    }
    await api.cluster_wide(CRDS, body)
    path = f"/apis/{GROUP}/v1alpha1/{plural}"
    for _ in range(100):
        if (await api.get(path)).code == 200:
            return path
        await asyncio.sleep(0.05)
    raise AssertionError("not served")


def widget(path: str, name: str = "a", **parts: Any) -> dict[str, Any]:
    """Return an object of the kind served under a path."""
    kind = path.rpartition("/")[2].capitalize()
    head = {"apiVersion": f"{GROUP}/v1alpha1", "kind": kind, "metadata": {"name": name}}
    return {**head, "spec": {"nodePolicy": "spread"}, **parts}


async def test_a_definition_is_established_and_discovered(api: Api, widgets: str) -> None:
    plural = widgets.rpartition("/")[2]
    stored = await api.get(f"{CRDS}/{plural}.{GROUP}")
    conditions = {one["type"]: one["status"] for one in stored["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert stored["status"]["storedVersions"] == ["v1alpha1"]
    assert stored["spec"]["names"]["listKind"] == f"{plural.capitalize()}List"
    assert stored["spec"]["names"]["singular"] == plural
    for _ in range(100):
        resources = (await api.get(f"/apis/{GROUP}/v1alpha1")).body
        names = [one["name"] for one in resources["resources"]] if "resources" in resources else []
        if plural in names:
            break
        await asyncio.sleep(0.05)
    assert {plural, f"{plural}/status"} <= set(names)


async def test_custom_objects_are_defaulted_pruned_and_counted(api: Api, widgets: str) -> None:
    spec = {"nodePolicy": "binpack", "unknown": 1, "free": {"any": {"thing": 1}}}
    made = await api.made(widgets, widget(widgets, spec=spec, status={"pods": 3}))
    assert made["spec"] == {
        "nodePolicy": "binpack",
        "priority": 5,
        "free": {"any": {"thing": 1}},
    }
    assert "status" not in made
    assert made["metadata"]["generation"] == 1
    path = f"{widgets}/a"
    reply = await api.merge(f"{path}/status", {"status": {"pods": 3}, "spec": {"priority": 9}})
    assert (reply["status"], reply["spec"]["priority"]) == ({"pods": 3}, 5)
    assert reply["metadata"]["generation"] == 1
    reply = await api.merge(path, {"spec": {"priority": 9}, "status": {"pods": 4}})
    assert (reply["status"], reply["spec"]["priority"]) == ({"pods": 3}, 9)
    assert reply["metadata"]["generation"] == 2
    reply = await api.merge(path, {"metadata": {"labels": {"a": "b"}}})
    assert reply["metadata"]["generation"] == 2
    reply = await api.merge(path, {"spec": {"priority": None}})
    assert reply["spec"]["priority"] == 5


async def test_items_of_a_custom_list_carry_their_kind(api: Api, widgets: str) -> None:
    made = await api.made(widgets, widget(widgets))
    listed = await api.get(widgets)
    assert listed["kind"] == f"{made['kind']}List"
    assert listed["items"] == [made]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"nodePolicy": "x"},
            'spec.nodePolicy: Unsupported value: "x": supported values: "binpack", "spread"',
        ),
        (
            {"nodePolicy": "spread", "priority": "high"},
            (
                'spec.priority: Invalid value: "string": spec.priority in body must be of type integer:'
                ' "string"'
            ),
        ),
        (
            {"nodePolicy": "spread", "priority": 101},
            (
                "spec.priority: Invalid value: 101: spec.priority in body should be less than or equal"
                " to 100"
            ),
        ),
        (
            {"nodePolicy": "spread", "priority": -1},
            (
                "spec.priority: Invalid value: -1: spec.priority in body should be greater than or"
                " equal to 0"
            ),
        ),
        (
            {"nodePolicy": "spread", "priority": 1.5},
            (
                '[spec.priority: Invalid value: "number": spec.priority in body must be of type'
                ' integer: "number", <nil>: Invalid value: "": Checked value must be of type integer'
                " (default format) in spec.priority]"
            ),
        ),
        ({}, "spec.nodePolicy: Required value"),
        ({"nodePolicy": None}, "spec.nodePolicy: Required value"),
        (
            {"nodePolicy": "spread", "name": "ABC"},
            "spec.name: Invalid value: \"ABC\": spec.name in body should match '^[a-z]+$'",
        ),
        (
            {"nodePolicy": "spread", "name": "abcdef"},
            "spec.name: Too long: may not be more than 5 bytes",
        ),
        (
            {"nodePolicy": "spread", "name": ""},
            'spec.name: Invalid value: "": spec.name in body should be at least 1 chars long',
        ),
        (
            {"nodePolicy": "spread", "tags": ["a", "b", "c"]},
            "spec.tags: Too many: 3: must have at most 2 items",
        ),
        (
            {"nodePolicy": "spread", "tags": []},
            "spec.tags: Invalid value: 0: spec.tags in body should have at least 1 items",
        ),
        (
            {"nodePolicy": "spread", "tags": [1]},
            (
                'spec.tags[0]: Invalid value: "integer": spec.tags[0] in body must be of type string:'
                ' "integer"'
            ),
        ),
        (
            {"nodePolicy": "spread", "labels": {"a": "b", "c": "d"}},
            "spec.labels: Too many: 2: must have at most 1 item",
        ),
        (
            {"nodePolicy": "spread", "terms": [{"key": "a"}, {"key": "a"}]},
            'spec.terms[1]: Duplicate value: {"key":"a"}',
        ),
        (
            {"nodePolicy": "spread", "terms": [{"weight": 3}]},
            (
                "[spec.terms[0].weight: Invalid value: 3: spec.terms[0].weight in body should be a"
                " multiple of 2, spec.terms[0].key: Required value]"
            ),
        ),
        (
            {"nodePolicy": "spread", "port": [1]},
            (
                'spec.port: Invalid value: "array": spec.port in body must be of type integer,string:'
                ' "array"'
            ),
        ),
    ],
)
async def test_a_schema_is_enforced_in_the_real_servers_words(
    api: Api, widgets: str, spec: Any, text: str
) -> None:
    reply = await api.post(widgets, widget(widgets, "bad", spec=spec))
    kind = widgets.rpartition("/")[2].capitalize()
    assert (reply.code, reply["reason"]) == (422, "Invalid")
    assert reply["message"] == f'{kind}.{GROUP} "bad" is invalid: {text}'
    details = reply["details"]
    assert (details["name"], details["group"], details["kind"]) == ("bad", GROUP, kind)
    assert details["causes"][0]["field"] == text.lstrip("[").partition(": ")[0]


async def test_a_type_error_says_so_in_its_cause(api: Api, widgets: str) -> None:
    spec = {"nodePolicy": "spread", "priority": "high"}
    reply = await api.post(widgets, widget(widgets, "bad", spec=spec))
    (cause,) = reply["details"]["causes"]
    assert cause["reason"] == "FieldValueTypeInvalid"
    assert cause["field"] == "spec.priority"


async def test_unknown_fields_are_refused_named_or_dropped_as_asked(api: Api, widgets: str) -> None:
    body = widget(widgets, spec={"nodePolicy": "spread", "foo": 1, "bar": {}})
    reply = await api.post(widgets, body, fieldValidation="Strict")
    assert (reply.code, reply["reason"]) == (400, "BadRequest")
    assert (
        'strict decoding error: unknown field "spec.bar", unknown field "spec.foo"'
        in (reply["message"])
    )
    reply = await api.post(widgets, body, fieldValidation="Warn")
    assert reply.code == 201
    assert reply.headers.getall("Warning") == [
        '299 - "unknown field \\"spec.bar\\""',
        '299 - "unknown field \\"spec.foo\\""',
    ]
    body["metadata"]["name"] = "b"
    reply = await api.post(widgets, body, fieldValidation="Ignore")
    assert reply.code == 201
    assert "Warning" not in reply.headers


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        ({"kind": None}, 400, "Object 'Kind' is missing in"),
        ({"apiVersion": "other/v1"}, 400, "the API version in the data (other/v1) does not match"),
        ({"kind": "Other"}, 422, 'kind: Invalid value: "Other": must be '),
    ],
)
async def test_custom_objects_have_to_say_what_they_are(
    api: Api, widgets: str, change: Any, code: int, text: str
) -> None:
    body = {key: value for key, value in (widget(widgets) | change).items() if value}
    reply = await api.post(widgets, body)
    assert reply.code == code
    assert text in reply["message"]


async def test_custom_objects_know_no_strategic_patch(api: Api, widgets: str) -> None:
    await api.made(widgets, widget(widgets))
    reply = await api.strategic(f"{widgets}/a", {"spec": {"priority": 1}})
    assert (reply.code, reply["reason"]) == (415, "UnsupportedMediaType")


async def test_an_update_of_a_custom_object_needs_a_version(api: Api, widgets: str) -> None:
    made = await api.made(widgets, widget(widgets))
    del made["metadata"]["resourceVersion"]
    reply = await api.put(f"{widgets}/a", made)
    assert reply.code == 422
    assert reply["message"].endswith(
        "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    )


async def test_printer_columns_appear_in_tables(api: Api, widgets: str) -> None:
    await api.made(widgets, widget(widgets))
    status = {"conditions": [{"type": "Other", "status": "x"}, {"type": "Ready", "status": "True"}]}
    await api.merge(f"{widgets}/a/status", {"status": status})
    table = await api.get(widgets, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    columns = [(one["name"], one["priority"]) for one in table["columnDefinitions"]]
    assert columns == [("Name", 0), ("Policy", 0), ("Ready", 0), ("Priority", 1), ("Age", 0)]
    assert table["rows"][0]["cells"][:4] == ["a", "spread", "True", 5]


async def test_apply_merges_list_maps_of_a_schema(api: Api, widgets: str) -> None:
    plural = widgets.rpartition("/")[2]
    head = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": plural.capitalize(),
        "metadata": {"name": "a"},
    }
    spec = {"nodePolicy": "spread", "terms": [{"key": "x", "weight": 2}]}
    assert (await api.apply(f"{widgets}/a", {**head, "spec": spec}, "one")).code == 201
    other = {"terms": [{"key": "y", "weight": 4}]}
    reply = await api.apply(f"{widgets}/a", {**head, "spec": other}, "two")
    assert reply.code == 200, reply
    assert [one["key"] for one in reply["spec"]["terms"]] == ["x", "y"]


@pytest.mark.usefixtures("cluster")
async def test_a_removed_definition_takes_its_objects_along(api: Api, widgets: str) -> None:
    await api.made(widgets, widget(widgets))
    plural = widgets.rpartition("/")[2]
    async with api.watch(widgets) as watch:
        await watch.next()
        assert (await api.delete(f"{CRDS}/{plural}.{GROUP}")).code == 200
        assert (await watch.next())["type"] == "DELETED"
        assert await watch.ended()
    reply = await api.get(widgets)
    assert (reply.code, reply.body) == (404, "404 page not found\n")
