"""The lease before an API server of which seven answers in ten go wrong: whoever holds it keeps it, mostly."""

import asyncio
import copy
import json
import random
from typing import Any

import pytest

from scheduler.errors import ApiError
from scheduler.kube.lead.lease import Lease, Place
from tests.virtual.clock import Clock, Process
from tests.virtual.faulty import Faults

Json = dict[str, Any]
# How long the client waits for the answer to a write and to a read.
_WRITE_SECONDS, _READ_SECONDS = 5.0, 30.0


class FaultyApi:
    """One lease."""

    def __init__(self, seed: int) -> None:
        self._faults = Faults(seed)
        self._lease: Json | None = None
        self._version = 0

    async def get(self, _: str) -> Json:
        def answer() -> Json:
            if self._lease is None:
                raise ApiError(404, "NotFound", "")
            return copy.deepcopy(self._lease)

        return await self._faults.serve(answer, _READ_SECONDS)

    async def send(self, method: str, _: str, body: Json) -> bytes:
        def write() -> bytes:
            if method == "PUT" and body["metadata"]["resourceVersion"] != str(self._version):
                raise ApiError(409, "Conflict", "")
            self._version += 1
            self._lease = copy.deepcopy(body)
            self._lease["metadata"]["resourceVersion"] = str(self._version)
            return json.dumps(self._lease).encode()

        return await self._faults.serve(write, _WRITE_SECONDS)


class Notes:
    """Hands nothing on."""

    def write_annotations(self) -> dict[str, str]:
        return {}

    def read_annotations(self, _: dict[str, str]) -> None:
        """Takes nothing over."""


def start(api: Any, seed: int) -> tuple[Clock, Process, Lease, asyncio.Task[None]]:
    clock = Clock(random.Random(seed))
    process = Process(clock)
    lease = Lease(api, Place("n", "l"), identity="a", notes=Notes(), clock=clock.read)
    return clock, process, lease, process.create_task(lease.run())


@pytest.mark.parametrize("seed", range(5))
def test_a_leader_is_there_although_most_answers_go_wrong(seed: int) -> None:
    clock, process, lease, keeping = start(FaultyApi(seed), seed)
    samples = []
    for second in range(30, 1830):
        clock.run(1000.0 + second)
        samples.append(bool(lease.get_present_term()))
    assert not keeping.done()
    process.kill()
    assert not process.died_of
    # One read and one write every two seconds came to a tenth of the time, and tries of which each waited for a
    # second, with renewals that counted only when they were answered, to four fifths.
    assert sum(samples) >= 0.95 * len(samples)


class SlowApi(FaultyApi):
    """Every answer comes, after so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(0)
        self._seconds = seconds

    async def _serve(self, serve: Any, patience: float) -> Any:
        await asyncio.sleep(min(self._seconds, patience))
        return serve()


@pytest.mark.parametrize("seconds", [0.5, 1.5, 3.0])
def test_an_api_server_that_is_slow_costs_no_leadership(seconds: float) -> None:
    """A try that is given up early is followed by one that waits longer."""
    clock, process, lease, keeping = start(SlowApi(seconds), 0)
    clock.run(1060.0)
    term = lease.get_present_term()
    assert term
    clock.run(1360.0)
    assert lease.get_present_term() == term
    assert not keeping.done()
    process.kill()


def test_a_healthy_server_is_asked_once_for_each_renewal() -> None:
    class Counting(SlowApi):
        asked = 0

        async def _serve(self, serve: Any, patience: float) -> Any:
            self.asked += 1
            return await super()._serve(serve, patience)

    api = Counting(0.01)
    clock, process, _, _ = start(api, 0)
    clock.run(1100.0)
    process.kill()
    assert api.asked <= 100 / 2 + 3
