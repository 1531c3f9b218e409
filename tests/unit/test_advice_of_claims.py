"""Each advice of ``evenkeel explain`` about claims lets the pod in, once it is followed."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from scheduler.simulate import schedule
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

Json = dict[str, Any]


def change_count(objects: list[Json]) -> None:
    find(objects, "mine")["spec"]["devices"]["requests"][0]["exactly"]["count"] = 1


def drop_selector(objects: list[Json]) -> None:
    del find(objects, "mine")["spec"]["devices"]["requests"][0]["exactly"]["selectors"]


def tolerate(objects: list[Json]) -> None:
    exactly = find(objects, "mine")["spec"]["devices"]["requests"][0]["exactly"]
    exactly["tolerations"] = [{"key": "old", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}]  # fmt: skip


def drop_constraint(objects: list[Json]) -> None:
    del find(objects, "mine")["spec"]["devices"]["constraints"]


def free(objects: list[Json]) -> None:
    del find(objects, "taken")["status"]
    objects[:] = [one for one in objects if not one.get("spec", {}).get("nodeName") or one["kind"] != "Pod"]  # fmt: skip


def find(objects: list[Json], name: str) -> Json:
    return next(one for one in objects if one["metadata"]["name"] == name)


SELECTOR = [{"cel": {"expression": f"device.attributes['{devices.DRIVER}'].model == 'b'"}}]
PAIR = [devices.device(f"gpu-{one}", attributes=of_model(one)) for one in ("a", "c")]


@pytest.mark.parametrize(
    ("step", "text", "objects", "change"),
    [
        (
            {"do": "changeClaim", "claim": "default/mine", "request": "gpu", "change": "count"},
            "request 1 device instead of 2 in request gpu of claim mine",
            [*node_of("n0", PAIR[0]), claim("mine", devices.request(count=2))],
            change_count,
        ),
        (
            {"do": "changeClaim", "claim": "default/mine", "request": "gpu", "change": "selector"},
            f"drop selector #0 ({SELECTOR[0]['cel']['expression']}) in request gpu of claim mine",
            [*node_of("n0", PAIR[0]), claim("mine", devices.request(selectors=SELECTOR))],
            drop_selector,
        ),
        (
            {"do": "changeClaim", "claim": "default/mine", "request": "gpu", "change": "toleration"},
            "tolerate old=yes:NoSchedule in request gpu of claim mine",
            [*node_of("n0", PAIR[0] | {"taints": OLD}), claim("mine")],
            tolerate,
        ),
        (
            {"do": "changeClaim", "claim": "default/mine", "request": None, "change": "constraint"},
            f"drop constraint #0 (matchAttribute {MODEL}) of claim mine",
            [*node_of("n0", *PAIR), claim("mine", devices.request(count=2), constraints=[{"matchAttribute": MODEL}])],
            drop_constraint,
        ),
        (
            {"do": "freeClaim", "claim": "default/taken", "pods": []},
            "take its devices from claim default/taken, which no pod on a node has",
            [*node_of("n0", PAIR[0]), used("taken", "n0", "gpu-a"), claim("mine")],
            free,
        ),
        (
            {"do": "freeClaim", "claim": "default/taken"},
            "end pod default/q (priority 0), all that have claim default/taken",
            [
                *node_of("n0", PAIR[0]), used("taken", "n0", "gpu-a", "q", "gone"), pod_of("q", "taken", node="n0"),
                claim("mine"),
            ],
            free,
        ),
    ],
)  # fmt: skip
def test_each_advice_about_claims_lets_the_pod_in(
    step: Json, text: str, objects: list[Json], change: Callable[[list[Json]], None]
) -> None:
    objects = copy.deepcopy([CLASS, *objects, pod_of("p", "mine")])

    def find_node() -> str | None:
        found: str | None = next(
            one["node"] for one in schedule(objects)["pods"] if one["name"] == "p"
        )
        return found

    assert find_node() is None
    found = explained(*objects[1:])
    mine = [one for one in found["advice"] if one["text"] == f"{text}: it fits on n0"]
    assert mine, [one["text"] for one in found["advice"]]
    assert step.items() <= mine[0]["steps"][0].items()
    change(objects)
    assert find_node() == "n0"
