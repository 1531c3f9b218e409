"""What the probes say of a replica: what a person must mend, and not what heals by itself."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from scheduler.kube.lead.holding import FoundLease, Holder
from scheduler.kube.report.probes import Probes, Signs
from scheduler.kube.troubles import Trouble


class Replica:
    """Parts of a replica as the probes look at them; well unless changed."""

    def __init__(self) -> None:
        self.is_started, self.turned_at = True, time.monotonic()
        self.holder = Holder.SELF
        self.lease = SimpleNamespace(
            find_holder=lambda: self.holder, last_found=FoundLease(), trouble=None
        )
        self.fence = SimpleNamespace(trouble=None)
        self.stream = SimpleNamespace(
            name="nodes", is_listed=True, trouble=None, get_age=lambda _: 1.0
        )
        self.rights = SimpleNamespace(missing=())
        self.troubles: dict[str, Trouble] = {}

    def probes(self) -> Probes:
        signs: Any = (self.lease, self.fence, [self.stream], self.rights, self.troubles)
        return Probes(lambda: self.is_started, lambda: self.turned_at, Signs(*signs))


def trouble(seconds: float) -> Trouble:
    return Trouble(time.monotonic() - seconds, "403 Forbidden: no", is_refused=True)


def test_who_is_well_says_nothing() -> None:
    assert (
        Replica().probes().list_reasons_to_end(),
        Replica().probes().list_reasons_not_ready(),
    ) == ([], [])


def test_who_has_not_begun_is_not_ready_and_not_ill() -> None:
    """Kernels may be compiled for a minute before the first turn."""
    replica = Replica()
    replica.is_started, replica.turned_at = False, 0.0
    assert replica.probes().list_reasons_to_end() == []
    assert replica.probes().list_reasons_not_ready() == ["starting"]


def test_a_loop_that_does_not_turn_is_ill() -> None:
    replica = Replica()
    replica.turned_at -= 70.0
    assert replica.probes().list_reasons_to_end() == ["the loop has not turned for 70 s"]


@pytest.mark.parametrize(("seconds", "told"), [(5.0, False), (40.0, True)])
def test_what_cannot_be_read_for_long_is_told(seconds: float, *, told: bool) -> None:
    replica = Replica()
    replica.stream.trouble = replica.lease.trouble = replica.fence.trouble = trouble(seconds)
    replica.troubles["policies"] = trouble(seconds)
    wanted = [
        "stream nodes cannot be read: 403 Forbidden: no",
        "policies cannot be read: 403 Forbidden: no",
        "the lease cannot be read or written: 403 Forbidden: no",
        "pods cannot be fenced: 403 Forbidden: no",
    ]
    assert replica.probes().list_reasons_not_ready() == (wanted if told else [])


def test_missing_rights_are_told() -> None:
    replica = Replica()
    replica.rights.missing = ("create pods/binding at the cluster scope",)
    assert replica.probes().list_reasons_not_ready() == [
        "a right is missing: create pods/binding at the cluster scope"
    ]


@pytest.mark.parametrize(
    ("holder", "seconds", "told"),
    [
        (Holder.REPLICA, 1.0, []),
        (Holder.PEER, 1.0, []),
        (Holder.OTHER, 1.0, ["the lease is held by x, which is not a replica of Evenkeel"]),
        (Holder.NOBODY, 20.0, []),
        (Holder.NOBODY, 31.0, ["nobody leads"]),
    ],
)
def test_a_lease_that_nobody_or_a_stranger_holds_is_told(
    holder: Holder, seconds: float, told: list[str]
) -> None:
    replica = Replica()
    replica.holder = holder
    replica.lease.last_found = FoundLease("x", {}, time.monotonic() - seconds, 15.0)
    assert replica.probes().list_reasons_not_ready() == told
