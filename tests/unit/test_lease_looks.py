"""Looks at a lease that somebody else holds, and when it is tried next."""

import pytest

from scheduler.errors import ApiError
from scheduler.kube.lead.holding import Holder
from scheduler.kube.lead.lease import Lease, Place
from tests.model.lease_server import Api, Clock, Json, Notes


def lease_of(name: str, api: Api, clock: Clock) -> Lease:
    return Lease(api, Place("n", "l"), identity=name, notes=Notes(), clock=clock)  # type: ignore[arg-type]


async def test_the_time_of_a_holder_runs_from_the_first_look_and_it_is_tried_when_it_is_over() -> (
    None
):
    """A process that starts looks before it has compiled its kernels, which may take a minute."""
    api, clock = Api(), Clock()
    first, second = lease_of("first", api, clock), lease_of("second", api, clock)
    await first._take_or_renew()
    await second.observe_holder()
    assert (second.find_holder(), second.get_present_term()) == (Holder.REPLICA, 0)
    clock.now += 14.5
    await second._take_or_renew()
    assert second.get_present_term() == 0
    # Not at the next of its tries, which are two seconds apart.
    assert second._find_wait() == 0.5
    clock.now += 0.5
    await second._take_or_renew()
    assert second.get_present_term() == 1
    assert second._find_wait() == 2.0


async def test_a_look_at_no_lease_and_at_no_api_server_is_no_trouble(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = Api()
    lease = lease_of("one", api, Clock())
    await lease.observe_holder()

    async def fail(_: str) -> Json:
        raise ApiError(503, "ServiceUnavailable", "")

    with monkeypatch.context() as away:
        away.setattr(api, "get", fail)
        await lease.observe_holder()
    assert (lease.find_holder(), lease.trouble, lease.n_errors) == (Holder.NOBODY, None, 0)
    await lease._take_or_renew()
    assert lease.held.is_clean
