"""What a move has left is put right for each workload by itself, whatever others have written on theirs."""

import copy
from typing import Any

import pytest

from scheduler.errors import ApiError
from scheduler.kube.evict.surge import surging
from tests.model.replicas import COST, LABEL, Replicas
from tests.unit.test_surge import FORBIDDEN, NOW, Clock, mend, move


class _Tenant(Replicas):
    """Beside the Deployment there is one that says that a move has left it, and whose replicas nobody may write."""

    async def get(self, path: str, params: Any = None) -> dict[str, Any]:
        found = await super().get(path, params)
        if path.endswith("/deployments") and not params:
            theirs = copy.deepcopy(self.deployment)
            theirs["metadata"] |= {"namespace": "theirs", "uid": "theirs"}
            theirs["metadata"]["managedFields"] = [_say_raised(5)]
            found["items"].insert(0, theirs)
        elif "/theirs/" in path:
            found["items"][0]["metadata"] |= {"namespace": "theirs", "uid": "theirs", "managedFields": [_say_raised(5)]}  # fmt: skip
        return found


def _say_raised(until: int) -> dict[str, Any]:
    return {"manager": f"evenkeel-surge-{until}", "operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}}  # fmt: skip


async def test_what_is_refused_for_one_workload_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = _Tenant(2)
    api.scale(3, f"evenkeel-surge-{NOW:.0f}")
    api.refusals["/theirs/deployments/web/scale"] = ApiError(422, "Invalid", "replicas: -1")
    said = await mend(api, Clock(monkeypatch))
    assert api.deployment["spec"]["replicas"] == 2
    assert any(text.startswith("Deployment default/web had one pod more") for text in said)
    assert "Deployment theirs/web keeps the pod more that a move had left: 422" in said[0]


async def test_a_mark_that_cannot_be_removed_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = Replicas(2)
    for i, pod in enumerate(api.pods, 1):
        pod["metadata"]["labels"][LABEL] = str(i)
    api.refusals["/pods/web-1-1/status"] = FORBIDDEN
    said = await mend(api, Clock(monkeypatch))
    assert api.list_marked() == ["web-1-1"]
    assert said[0].startswith("pod default/web-1-1 keeps the mark that a move had left: 403")


async def test_a_move_that_lost_a_race_leaves_the_other_one_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both have begun within one second and may take as long, so their marks are the same."""
    api, clock = Replicas(2), Clock(monkeypatch)
    monkeypatch.setattr(surging, "get_time", lambda: clock.now)

    def win() -> None:
        """The other process moves the second pod, right after this one has marked the first."""
        marked = [one["metadata"]["labels"] for one in api.pods if LABEL in one["metadata"]["labels"]]  # fmt: skip
        if len(marked) == 1 and api.deployment["spec"]["replicas"] == 2:
            until = marked[0][LABEL]
            api.pods[1]["metadata"] |= {"labels": {LABEL: until}, "annotations": {COST: "-2147483647"}}  # fmt: skip
            api.scale(3, f"evenkeel-surge-{until}")

    api.between = win
    came = await move(api)
    assert came.trouble == "it was not moved: Deployment web was written meanwhile"
    assert not came.is_evicted
    assert "web-1-1" in api.list_nodes()
    assert api.list_marked() == ["web-1-2"]


async def test_a_mark_that_somebody_has_taken_away_ends_the_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without it, the controller would choose any pod."""
    api, _ = Replicas(2), Clock(monkeypatch)

    def take_away() -> None:
        if api.deployment["spec"]["replicas"] == 3:
            api.pods[0]["metadata"] |= {"labels": {}, "annotations": {}}

    api.between = take_away
    came = await move(api)
    assert came.trouble == "it stays: somebody has taken its mark away meanwhile"
    assert came.is_taken_back
    assert (api.lost, api.list_marked()) == (["web-1-3"], [])
