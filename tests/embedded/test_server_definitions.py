"""Definitions of custom kinds themselves: what is refused, and several versions of one kind."""

from typing import Any

import pytest

from tests.embedded.conftest import Api

GROUP = "test.evenkeel.dev"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"name": "wrong.test.dev"}, 'must be spec.names.plural+"."+spec.group'),
        ({"schema": None}, "openAPIV3Schema: Required value"),
    ],
)
async def test_definitions_that_make_no_sense_are_refused(api: Api, change: Any, text: str) -> None:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    if "schema" in change:
        del version["schema"]
    body = {
        "metadata": {"name": change.get("name", "things.test.dev")},
        "spec": {
            "group": "test.dev",
            "scope": "Cluster",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [version],
        },
    }
    reply = await api.post(CRDS, body)
    assert reply.code == 422
    assert text in reply["message"]


@pytest.mark.usefixtures("cluster")
async def test_a_second_version_reads_the_same_objects(api: Api) -> None:
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                }
            },
        }
        for name in ("v1", "v2")
    ]
    names = {"plural": "things", "kind": "Thing"}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": versions}
    await api.made(CRDS, {"metadata": {"name": f"things.{GROUP}"}, "spec": spec})
    head = {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": "a"}}
    await api.made(api.at("things", f"apis/{GROUP}/v1"), {**head, "x": 1})
    reply = await api.get(f"{api.at('things', f'apis/{GROUP}/v2')}/a")
    assert (reply["apiVersion"], reply["x"]) == (f"{GROUP}/v2", 1)
