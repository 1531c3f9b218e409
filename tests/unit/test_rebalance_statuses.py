"""How statuses of RebalancePolicies are written, whatever is in them already."""

import copy
import dataclasses
from typing import Any, cast

import msgspec
import pytest

from scheduler.api import times
from scheduler.api.rebalancing.policy import read_policy
from scheduler.config import Config
from scheduler.errors import ApiError
from scheduler.kube.client import Access, ApiClient
from scheduler.kube.watch.snapshot import Snapshot
from scheduler.rebalance import planning
from scheduler.rebalance.planned import write_planned
from scheduler.rebalance.statuses import Reason, Statuses
from tests.unit.test_defrag import waiting
from tests.unit.test_rebalance import NODES, PODS, Json, body, plan


class Api:
    """Takes what is written, and answers with the policy."""

    def __init__(self) -> None:
        self.sent: list[Json] = []

    async def send(self, _method: str, _path: str, sent: Json, **_: Any) -> bytes:
        self.sent.append(sent)
        return msgspec.json.encode({"metadata": {"name": "p", "resourceVersion": "8"}})


async def write(status: Any) -> Json:
    api = Api()
    policy = body(status=status, version=7)
    written = await Statuses(cast("ApiClient", api)).write_state(policy, Reason.IN_FORCE, "", ())
    assert written.metadata.resource_version == "8"
    return api.sent[0]


async def test_a_status_is_written_for_the_version_that_was_read() -> None:
    assert (await write(None))["metadata"] == {"uid": "uid-p", "resourceVersion": "7"}


@pytest.mark.parametrize("since", [None, "", "yesterday", 5])
async def test_a_condition_without_a_time_gets_one(since: Any) -> None:
    """The API server refuses what is no time, so the policy would never be carried out again."""
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": since}
    (written,) = (await write({"conditions": [condition]}))["status"]["conditions"]
    assert times.read_time(written["lastTransitionTime"]) is not None
    kept = {**condition, "lastTransitionTime": "2026-08-03T20:10:00Z"}
    (written,) = (await write({"conditions": [kept]}))["status"]["conditions"]
    assert written["lastTransitionTime"] == "2026-08-03T20:10:00Z"


def test_a_plan_fits_into_a_status_whoever_is_let_in() -> None:
    """A move may let a group in that has any number of pods."""
    made = plan(read_policy(body()), [], 9, [*NODES, *PODS, waiting("wide", gpu=1, gpumem=1000)])
    printed = copy.deepcopy(made.printed)
    move = printed["bundles"][0]["moves"][0]
    move["letsIn"] *= 10_000
    planned = write_planned(dataclasses.replace(made, printed=printed))
    assert planned["letsIn"] == 10_000
    assert max(map(len, planned["steps"])) <= 1024


@pytest.mark.parametrize("what", ["Namespace", "PodDisruptionBudget", "ConfigMap kube-system/x"])
async def test_no_plan_is_made_without_what_it_hangs_on(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its labels a namespace would match a selector of those that lack a label.

    Without HAMi's device configuration a plan would be of other requests than the scheduler's.
    """

    async def read_snapshot(*_: Any) -> Snapshot:
        return Snapshot([*NODES, *PODS], {what: "403 Forbidden"})

    monkeypatch.setattr(planning, "read_snapshot", read_snapshot)
    planner = planning.Planner(cast("Access", None), Config())
    with pytest.raises(ApiError, match=f"{what} cannot be read: 403 Forbidden"):
        await planner.plan(read_policy(body()), [], 9)
