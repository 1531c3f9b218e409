"""While Kueue's own controller leads, Evenkeel keeps away from the queues: how it finds out, and when it comes back."""

import datetime as dt
from typing import Any

from scheduler.api import names
from scheduler.errors import ApiError
from scheduler.kube import wall_clock
from scheduler.kube.queues.guard import Guard, KaiPods, KueueLease
from scheduler.kube.troubles import Trouble

Json = dict[str, Any]


class Api:
    """The leases of that name, by namespace."""

    def __init__(self) -> None:
        self.leases: dict[str, Json] = {}
        self.trouble: ApiError | None = None

    async def get(self, path: str) -> Json:
        before, _, after = path.partition("/namespaces/")
        assert before == "/apis/coordination.k8s.io/v1"
        namespace, _, name = after.partition("/leases/")
        assert name == names.KUEUE_LEASE
        if self.trouble is not None:
            raise self.trouble
        if namespace not in self.leases:
            raise ApiError(404, "NotFound", "no")
        return self.leases[namespace]


class Stage:
    """A guard, and how often it has said that something changed."""

    def __init__(self, namespace: str = "kueue-system") -> None:
        self.api, self.n_changes = Api(), 0
        self.troubles: dict[str, Trouble] = {}
        api: Any = self.api
        self.guard = Guard(api, KueueLease(namespace), self._note_change, self.troubles)

    def _note_change(self) -> None:
        self.n_changes += 1

    async def look(self, *leases: Json) -> bool:
        self.api.leases = {one["metadata"]["namespace"]: one for one in leases}
        await self.guard.look()
        return self.guard.is_open


def lease(
    age: float,
    *,
    holder: str = "kueue",
    version: str = "1",
    namespace: str = "kueue-system",
    seconds: int = 15,
) -> Json:
    renewed = wall_clock.now() - dt.timedelta(seconds=age)
    spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": renewed.isoformat()}  # fmt: skip
    return {"metadata": {"namespace": namespace, "resourceVersion": version}, "spec": spec}


async def test_without_kueue_queues_are_managed_from_the_first_look_on() -> None:
    stage = Stage()
    assert not stage.guard.is_open
    assert await stage.look()
    assert stage.n_changes == 1


async def test_a_lease_that_was_renewed_lately_keeps_away_until_it_is_given_back() -> None:
    stage = Stage()
    assert not await stage.look(lease(2.0))
    assert stage.guard.holder == "kueue in namespace kueue-system"
    assert stage.n_changes == 1
    assert await stage.look(lease(0.0, holder="", version="2"))
    assert not await stage.look(lease(0.0, version="3"))
    assert stage.n_changes == 3


async def test_a_lease_that_one_has_left_behind_does_not_keep_away() -> None:
    stage = Stage()
    assert await stage.look(lease(60.0))


async def test_a_lease_that_changes_keeps_away_whatever_the_clocks_say() -> None:
    stage = Stage()
    assert await stage.look(lease(3600.0))
    assert not await stage.look(lease(3597.0, version="2"))
    assert not await stage.look(lease(3597.0, version="2"))


async def test_a_lease_in_a_namespace_of_a_tenant_holds_nothing() -> None:
    stage = Stage()
    assert await stage.look(lease(0.0, namespace="evil"))
    assert await stage.look(lease(0.0, namespace="evil", version="2"))
    elsewhere = Stage("queues")
    assert not await elsewhere.look(lease(0.0, namespace="queues"))
    assert elsewhere.guard.holder == "kueue in namespace queues"


async def test_a_lease_counts_for_five_minutes_at_most_however_long_it_says() -> None:
    stage = Stage()
    for seconds in (2_000_000_000, 2**63, -5):
        assert await stage.look(lease(310.0, seconds=seconds))
    assert not await stage.look(lease(290.0, seconds=2_000_000_000))
    # Some installations renew it as seldom as that.
    assert not await Stage().look(lease(130.0, seconds=137))


async def test_a_lease_that_is_deleted_and_made_again_counts_as_new() -> None:
    stage = Stage()
    assert await stage.look(lease(60.0))
    assert await stage.look()
    assert await stage.look(lease(60.0, version="2"))


async def test_a_lease_that_cannot_be_read_leaves_all_as_it_was() -> None:
    stage = Stage()
    stage.api.trouble = ApiError(403, "Forbidden", "no")
    assert not await stage.look()
    assert [one.is_refused for one in stage.troubles.values()] == [True]
    stage.api.trouble = None
    assert await stage.look()
    assert stage.troubles == {}
    stage.api.trouble = ApiError(500, "InternalError", "no")
    assert await stage.look()


async def test_what_is_no_list_of_pods_leaves_everything_as_it_was() -> None:
    class Pods:
        async def get(self, path: str, _: dict[str, str]) -> Json:
            assert path == "/api/v1/namespaces/kai-scheduler/pods"
            return {"items": [{"metadata": {"name": "scheduler-1"}}]}

    api: Any = Pods()
    troubles: dict[str, Trouble] = {}
    guard = Guard(api, KaiPods(), lambda: None, troubles)
    await guard.look()
    assert not guard.is_open
    assert troubles.keys() == {"the pods of KAI-Scheduler"}
