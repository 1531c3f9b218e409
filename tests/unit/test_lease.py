"""The lease alone: who may act, until when, and what is known of those before."""

import asyncio
from collections.abc import Callable

import pytest
import structlog

from scheduler.api import names
from scheduler.errors import ApiError
from scheduler.kube.lead.always import AlwaysLeader
from scheduler.kube.lead.holding import Holder
from scheduler.kube.lead.lease import Lease, Place
from tests.model.lease_server import Api, Clock, Json, Notes

Make = Callable[[str], Lease]


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(api: Api, clock: Clock) -> Make:
    def made(name: str) -> Lease:
        return Lease(api, Place("n", "l"), identity=name, notes=Notes(), clock=clock)  # type: ignore[arg-type]

    return made


async def test_a_lease_given_back_settled_is_clean_for_the_next_and_for_no_other(
    make: Make, clock: Clock
) -> None:
    first, second, third = (make(name) for name in ("first", "second", "third"))
    await first._take_or_renew()
    # Nobody held it before.
    assert (first.held.reign, first.held.is_clean) == (1, True)
    await first.release(settled_reign=first.held.reign)
    await second._take_or_renew()
    assert (second.held.reign, second.held.is_clean) == (1, True)
    await third._take_or_renew()
    clock.now += 20.0
    await third._take_or_renew()
    assert third.get_present_term() == 1
    assert not third.held.is_clean


async def test_a_lease_that_is_created_again_is_not_clean_for_who_has_seen_another_hold_it(
    make: Make, api: Api, clock: Clock
) -> None:
    """What that one has sent may be on its way, although its lease was deleted."""
    first, second = make("first"), make("second")
    await first._take_or_renew()
    await second._take_or_renew()
    api.lease = None
    clock.now += 20.0
    await second._take_or_renew()
    assert second.get_present_term() == 1
    assert not second.held.is_clean


async def test_a_lease_given_back_with_something_on_its_way_is_not_clean(make: Make) -> None:
    first, second = make("first"), make("second")
    await first._take_or_renew()
    await first.release(settled_reign=0)
    await second._take_or_renew()
    assert second.get_present_term() == 1
    assert not second.held.is_clean


async def test_who_takes_its_own_lease_back_reigns_on_in_a_new_term(
    make: Make, clock: Clock
) -> None:
    lease = make("only")
    await lease._take_or_renew()
    clock.now += 60.0
    assert lease.get_present_term() == 0
    await lease._take_or_renew()
    assert (lease.get_present_term(), lease.held.reign) == (2, 1)


async def test_a_take_over_whose_answer_was_lost_is_one_all_the_same(
    make: Make, api: Api, clock: Clock
) -> None:
    """Else what the leader between has sent would not be fenced."""
    first, second = make("first"), make("second")
    await first._take_or_renew()
    await second._take_or_renew()
    clock.now += 20.0
    await second._take_or_renew()
    await first._take_or_renew()
    clock.now += 20.0
    api.lose = True
    with pytest.raises(ApiError):
        await first._take_or_renew()
    await first._take_or_renew()
    assert first.held.reign == 2
    assert not first.held.is_clean


async def test_a_renewal_whose_answer_was_lost_counts_from_when_it_was_sent_once_it_is_found(
    make: Make, api: Api, clock: Clock
) -> None:
    lease = make("only")
    await lease._take_or_renew()
    for seconds in (8.0, 1.0):
        # The second reads what the first has written.
        clock.now += seconds
        api.lose = True
        with pytest.raises(ApiError):
            await lease._take_or_renew()
    clock.now += 8.9
    assert lease.get_present_term() == 1
    clock.now += 0.1
    assert lease.get_present_term() == 0


async def test_a_renewal_found_after_its_term_has_lapsed_begins_another(
    make: Make, api: Api, clock: Clock
) -> None:
    """What was decided in the term that lapsed was given back."""
    lease = make("only")
    await lease._take_or_renew()
    for seconds in (8.0, 3.0):
        clock.now += seconds
        api.lose = True
        with pytest.raises(ApiError):
            await lease._take_or_renew()
    assert (lease.get_present_term(), lease.held.reign) == (2, 1)


async def test_who_holds_it_is_told(make: Make, api: Api, clock: Clock) -> None:
    first, second = make("first"), make("second")
    await first._take_or_renew()
    await second._take_or_renew()
    assert (first.find_holder(), second.find_holder()) == (Holder.SELF, Holder.REPLICA)
    assert api.lease is not None
    assert api.lease["metadata"]["annotations"][names.HOLDER] == "first"
    # As any other leader election writes: its name, and nothing else of ours is changed.
    api.lease["spec"]["holderIdentity"] = "somebody"
    api.lease["spec"]["renewTime"] = "now"
    await second._take_or_renew()
    assert second.find_holder() == Holder.OTHER
    clock.now += 20.0
    assert second.find_holder() == Holder.NOBODY


@pytest.mark.parametrize(
    ("status", "news", "is_change"),
    [
        (200, [b'{"type":"MODIFIED","object":{}}'], True),
        (200, [b'{"type":"DELETED","object":{}}'], True),
        # Too old a version: looked at once more it would be too old again.
        (200, [b'{"type":"ERROR","object":{"code":410}}'], False),
        (403, [b'{"kind":"Status"}'], False),
        (200, [], False),
    ],
)
async def test_only_a_change_of_the_lease_wakes_a_standby(
    make: Make, api: Api, status: int, news: list[bytes], is_change: bool
) -> None:
    first, second = make("first"), make("second")
    await first._take_or_renew()
    await second._take_or_renew()
    api.news = status, news
    assert await second._wait_for_change() is is_change
    assert api.watched == [str(api.version)]


async def test_a_lease_that_someone_deleted_is_its_holders_until_its_time_is_up(
    make: Make, api: Api, clock: Clock
) -> None:
    """The holder learns of it at its next renewal, and acts until then."""
    first, second = make("first"), make("second")
    await first._take_or_renew()
    await second._take_or_renew()
    api.lease = None
    await second._take_or_renew()
    assert (first.get_present_term(), second.get_present_term()) == (1, 0)
    # From its newest state on: else the watch would tell of the deletion again and again.
    await second._wait_for_change()
    assert api.watched == [""]
    clock.now += 16.0
    await second._take_or_renew()
    assert (first.get_present_term(), second.get_present_term()) == (0, 1)


async def test_a_strangers_lease_that_someone_deleted_is_free_at_once(make: Make, api: Api) -> None:
    """It schedules none of our pods, and its lease may be one of hours."""
    lease = make("only")
    spec = {"holderIdentity": "else", "leaseDurationSeconds": 3600, "renewTime": "then"}
    api.lease = {"metadata": {"resourceVersion": "0", "annotations": {}}, "spec": spec}
    await lease._take_or_renew()
    assert lease.find_holder() == Holder.OTHER
    api.lease = None
    await lease._take_or_renew()
    assert lease.find_holder() == Holder.SELF


_PEERS = {"holderIdentity": "else", "leaseDurationSeconds": 15, "renewTime": "then", "leaseTransitions": 7}  # fmt: skip


async def test_a_lease_that_is_shared_is_its_peers_until_its_time_is_up_also_when_it_was_deleted(
    api: Api, clock: Clock
) -> None:
    """kube-scheduler goes on binding until it hears of it."""
    lease = Lease(api, Place("n", "l", is_shared=True), identity="a", notes=Notes(), clock=clock)  # type: ignore[arg-type]
    api.lease = {"metadata": {"resourceVersion": "0"}, "spec": _PEERS}
    await lease._take_or_renew()
    api.lease = None
    await lease._take_or_renew()
    assert (lease.find_holder(), lease.get_present_term()) == (Holder.PEER, 0)
    clock.now += 15.0
    await lease._take_or_renew()
    assert lease.find_holder() == Holder.SELF


@pytest.mark.parametrize(
    ("left", "after"),
    [(_PEERS, 15.0), (_PEERS | {"holderIdentity": "", "leaseDurationSeconds": 1}, 0.0)],
    ids=["ran out", "given back"],
)
async def test_the_record_is_what_client_go_would_write(
    make: Make, api: Api, clock: Clock, left: Json, after: float
) -> None:
    """It counts holders on, and leaves nothing of a coordinated election, which is another's to run."""
    coordinated = {"strategy": "OldestEmulationVersion", "preferredHolder": "else"}
    api.lease = {"metadata": {"resourceVersion": "0"}, "spec": left | coordinated}
    lease = make("a")
    await lease._take_or_renew()
    clock.now += after
    await lease._take_or_renew()
    spec = api.lease["spec"]
    acquired = spec["acquireTime"]
    assert spec.keys() == {"holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions"}  # fmt: skip
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("a", 15, 8)  # fmt: skip
    await lease._take_or_renew()
    assert (api.lease["spec"]["leaseTransitions"], api.lease["spec"]["acquireTime"]) == (8, acquired)  # fmt: skip
    await lease.release(settled_reign=0)
    spec = api.lease["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("", 1, 8)  # fmt: skip


async def test_a_lease_is_made_without_a_transition(make: Make, api: Api) -> None:
    await make("a")._take_or_renew()
    assert api.lease is not None
    assert api.lease["spec"]["leaseTransitions"] == 0


async def test_any_change_of_the_record_is_a_sign_of_life(
    make: Make, api: Api, clock: Clock
) -> None:
    """As in client-go: of two holders whose clocks write the same time, say."""
    api.lease = {"metadata": {"resourceVersion": "0"}, "spec": dict(_PEERS)}
    lease = make("a")
    await lease._take_or_renew()
    clock.now += 14.0
    api.lease["spec"]["leaseTransitions"] = 8
    await lease._take_or_renew()
    clock.now += 14.0
    await lease._take_or_renew()
    assert lease.get_present_term() == 0


async def test_who_could_not_renew_its_own_lease_takes_it_anew_when_it_was_deleted(
    make: Make, api: Api, clock: Clock
) -> None:
    lease = make("only")
    await lease._take_or_renew()
    await lease._take_or_renew()
    clock.now += 12.0
    assert lease.find_holder() == Holder.NOBODY
    api.lease = None
    await lease._take_or_renew()
    assert (lease.find_holder(), lease.held.reign) == (Holder.SELF, 2)


async def test_a_lease_whose_annotations_someone_removed_is_given_back(
    make: Make, api: Api
) -> None:
    first, second = make("first"), make("second")
    await first._take_or_renew()
    assert api.lease is not None
    del api.lease["metadata"]["annotations"]
    await first.release(settled_reign=1)
    await second._take_or_renew()
    assert second.get_present_term() == 1


async def test_who_has_no_lease_warns_that_it_believes_to_be_alone() -> None:
    with structlog.testing.capture_logs() as logs:
        await AlwaysLeader().run()
    (line,) = logs
    assert line["log_level"] == "warning"
    assert "no other scheduler of the same name may run" in line["event"]
    assert "--lease-namespace" in line["remedy"]


async def test_each_time_that_it_cannot_be_read_is_counted(make: Make, api: Api) -> None:
    async def fails(_: str) -> Json:
        raise ApiError(500, "InternalError", "no")

    api.get = fails  # type: ignore[method-assign]
    lease = make("a")
    keeping = asyncio.create_task(lease.run())
    while not lease.n_errors:
        await asyncio.sleep(0)
    keeping.cancel()
    assert (lease.n_errors, lease.get_present_term()) == (1, 0)
