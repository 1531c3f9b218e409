"""The webhook of one replica: a server with a certificate, in a thread of its own, whatever it is for."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import NamedTuple

import structlog

from scheduler.api.admission.settings import Served
from scheduler.errors import ApiError, BadInput
from scheduler.kube.client import Access, ApiClient, get_backoff
from scheduler.kube.loop_thread import LoopThread
from scheduler.kube.report.metrics.reviews import ReviewCounts
from scheduler.kube.troubles import Trouble, add_failure
from scheduler.kube.webhook import devices, reviews
from scheduler.kube.webhook.devices import DeviceAdmission
from scheduler.kube.webhook.keeping import FileKeeper, Keeper, Pair
from scheduler.kube.webhook.known import Known
from scheduler.kube.webhook.server import Answering, ReviewServer

# Files and configurations are looked at so often.
_LOOK_SECONDS = 60.0
# So long it takes, at most, until the API server trusts a new authority.
_TRUST_SECONDS = 5.0
# So long one thread computes at most until another one gets its turn, a hundredth of Python's own default. An answer
# needs several turns, one after each read and write, while the main loop decides (``bench/admissions.py``).
SWITCH_SECONDS = 0.00005
_log = structlog.get_logger("evenkeel.webhook")


class Answers(NamedTuple):
    """Who answers reviews.

    Attributes:
        of_queues: what has to be known of the cluster for reviews of jobs and pods with a queue; None: there are none.
        of_devices: by what pods with devices are admitted; None: none is reviewed.
    """

    of_queues: Known | None = None
    of_devices: DeviceAdmission | None = None

    def list_by_path(self) -> dict[str, Answering]:
        """List by path what answers a review."""
        made: dict[str, Answering] = {}
        if self.of_queues is not None:
            made["mutate"] = partial(reviews.answer_defaults, cluster=self.of_queues)
            made["validate"] = partial(reviews.answer_checks, cluster=self.of_queues)
        if self.of_devices is not None:
            made["mutate-device-pods"] = partial(devices.answer_pod, admission=self.of_devices)
        return made


class Webhook:
    """Serves reviews, whether the replica leads or not.

    Args:
        served: how it is served.
        access: the API server.
        host: the address at which it listens.
        answers: who answers reviews.

    Attributes:
        counts: what it has answered.
        trouble: what keeps it from being served, or its certificate from being kept; None for nothing.
        port: where it listens; 0 before the start.
    """

    def __init__(self, served: Served, access: Access, host: str, answers: Answers) -> None:
        self._served, self._access, self._host = served, access, host
        self._answers = answers
        self._of_secret = None if served.settings.certificates else _import_secret_keeper()
        self.counts = ReviewCounts()
        self.trouble: Trouble | None = None
        self.port = 0

    async def run(self) -> None:
        """Serve until cancelled.

        Raises:
            BadInput: it cannot listen at the given port.
        """
        sys.setswitchinterval(SWITCH_SECONDS)
        thread = LoopThread("webhook")
        # It belongs to the loop of the thread.
        stop = asyncio.Event()
        serving = asyncio.ensure_future(thread.call(self._serve(stop)))
        try:
            await asyncio.shield(serving)
        finally:
            await thread.call(_set(stop))
            await asyncio.wait({serving})
            await thread.stop()

    async def _serve(self, stop: asyncio.Event) -> None:
        async with AsyncExitStack() as left_open:
            keeper = self._make_keeper(left_open)
            server = ReviewServer(self._answers.list_by_path(), self.counts)
            left_open.push_async_callback(server.stop)
            used, failures = None, 0
            while not stop.is_set():
                try:
                    used = await self._renew(keeper, server, used, stop)
                    self.trouble, failures = None, 0
                except (ApiError, BadInput) as error:
                    self.trouble, failures = add_failure(self.trouble, error), failures + 1
                    _log.warning("no certificate could be found", error=str(error))
                if used is not None and not self.port:
                    await server.start(self._host, self._served.settings.port)
                    self.port = server.port
                    _log.info("serving the webhook", port=self.port)
                seconds = get_backoff(failures) if failures else _LOOK_SECONDS
                await _wait(stop, seconds)

    def _make_keeper(self, left_open: AsyncExitStack) -> Keeper:
        if self._of_secret is None:
            return FileKeeper(self._served.settings.certificates)
        api = ApiClient(self._access, connections=2)
        left_open.push_async_callback(api.close)
        return self._of_secret(api, self._served)

    @staticmethod
    async def _renew(
        keeper: Keeper, server: ReviewServer, used: Pair | None, stop: asyncio.Event
    ) -> Pair:
        """Use the certificate that is to be used from now on, if it is another one.

        Raises:
            ApiError, BadInput: there is none.
        """
        pair = await keeper.find_pair()
        if pair != used:
            if used is not None:
                await _wait(stop, _TRUST_SECONDS)
            server.use(pair)
        return pair


def _import_secret_keeper() -> Callable[[ApiClient, Served], Keeper]:
    """Import what makes certificates: it takes a tenth of a second, and most operators have no webhook."""
    from scheduler.kube.webhook.secrets import SecretKeeper  # noqa: PLC0415

    return SecretKeeper


async def _set(event: asyncio.Event) -> None:
    event.set()


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    """Wait, but no longer than until the stop."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
