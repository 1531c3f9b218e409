"""The way to the API server: late, refused, lost on the way there or on the way back."""

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from scheduler.errors import ApiError
from scheduler.kube import answers, client
from tests.model.server import Answer, Server
from tests.virtual.clock import Clock
from tests.virtual.watches import Opening, Response, Watch

Request = tuple[str, str, dict[str, str], bytes | None]

_BROKEN: Answer = (0, b"")
_LOST = (_BROKEN, (500, b"{}"), (504, b"{}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How often what goes wrong; all zero is a network without faults, but not without delay.

    Attributes:
        seconds: mean time of a request on its way, and of its answer.
        refused: a request is turned away before it took effect, with one of ``refusals``.
        lost: it takes effect, and its answer is lost.
        late: as lost, and it takes effect after the client may have given up, or is no more: seconds
            later as often as minutes, at most ``late_seconds`` after it was sent.
        slow, slow_lists: an answer takes up to ``slow_seconds``.
        there_seconds, back_seconds: a request, and its answer, take exactly that much longer.
        news_seconds: mean time after which a watch hears of a change.
        lag: a watch falls silent for up to ``lag_seconds``, then hears of all at once.
    """

    seconds: float = 0.005
    refused: float = 0.0
    refusals: tuple[int, ...] = (0, 429, 500, 503)
    lost: float = 0.0
    late: float = 0.0
    late_seconds: float = 0.0
    slow: float = 0.0
    slow_lists: float = 0.0
    slow_seconds: float = 0.0
    there_seconds: float = 0.0
    back_seconds: float = 0.0
    news_seconds: float = 0.02
    lag: float = 0.0
    lag_seconds: float = 0.0


@dataclass(slots=True)
class Network:
    """Carries requests and watches.

    Attributes:
        say: gets a line for everything worth reading afterwards.
        special: may choose other faults for one request, by who sends it, method and path.
        holds: whether a request of that sender, method and path gets no further than ``held``, until it is
            let go.
        last_arrival: when the last of all that is on its way arrives.
    """

    clock: Clock
    server: Server
    rng: random.Random
    faults: Faults
    say: Callable[[str], None]
    watches: list[Watch] = field(default_factory=list)
    special: Callable[[str, str, str], Faults | None] = lambda _who, _method, _path: None
    holds: Callable[[str, str, str], bool] = lambda _who, _method, _path: False
    held: list[Request] = field(default_factory=list)
    last_arrival: float = 0.0
    _pumping: set[Watch] = field(default_factory=set)
    _reminding: set[Watch] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.server.on_change.append(lambda _: self._changed())

    def send(
        self,
        request: Request,
        answer: Callable[[Answer], None],
        who: str,
    ) -> None:
        """Carry a request to the server, and what it says back; either may fail."""
        if self.holds(who, *request[:2]):
            self._note(who, request, "is held")
            self.held.append(request)
            return
        rng, faults = self.rng, self.special(who, *request[:2]) or self.faults
        is_write = request[0] != "GET"
        speed = 1.0 / faults.seconds
        there = rng.expovariate(speed) + faults.there_seconds
        back = rng.expovariate(speed) + faults.back_seconds
        is_list = request[1].endswith(("/pods", "/nodes"))
        if rng.random() < (faults.slow_lists if is_list and faults.slow_lists else faults.slow):
            back += rng.uniform(0.2, 1.0) * faults.slow_seconds
        fate = rng.random()
        if fate < faults.refused:
            refusal = (rng.choice(faults.refusals), b"{}")
            self._note(who, request, f"refused with {refusal[0]}")
            self.clock.after(there, lambda: answer(refusal))
            return
        fate -= faults.refused
        lost: Answer | None = None
        if is_write and fate < faults.lost + faults.late:
            lost = rng.choice(_LOST)
            if fate < faults.late:
                there = faults.late_seconds ** rng.random() - rng.random()
                self._note(who, request, f"is on its way for {there:.1f} s")
            gone = rng.choice((0.01, 0.5, 30.0))
            self.clock.after(gone, lambda: answer(lost or _BROKEN))

        def arrive() -> None:
            said = self.server.handle(*request)
            if is_write:
                self._note(who, request, f"answers {said[0]}" + (", lost" if lost else ""))
            if lost is None:
                self.clock.after(back, lambda: answer(said))

        self.last_arrival = max(self.last_arrival, self.clock.now + there)
        self.clock.after(there, arrive)

    def let_go(self) -> list[int]:
        """Let all that was held arrive at once; what it got for an answer, which reaches nobody."""
        held, self.held = self.held, []
        answers = [self.server.handle(*request)[0] for request in held]
        for request, status in zip(held, answers, strict=True):
            self._note("late", request, f"answers {status}")
        return answers

    def open(self, response: Response, kind: str, params: dict[str, str]) -> None:
        """Open a watch."""

        def arrive() -> None:
            if self.rng.random() < self.faults.refused:
                status, body = self.rng.choice(self.faults.refusals), b"{}"
            elif int(params["resourceVersion"]) < self.server.compacted:
                status, body = 410, b"{}"
            else:
                status, body = 200, b""
                watch = response.watch = Watch(self.clock, self.server, response, params, kind)
                self.watches.append(watch)
            if not status:
                response.feed(aiohttp.ClientConnectionError("refused"))
                return
            response.answered(status, body)
            if response.watch is not None:
                self._pump_soon(response.watch)

        self.clock.after(self.rng.expovariate(100.0), arrive)

    def _changed(self) -> None:
        self.watches = [watch for watch in self.watches if watch.is_open]
        for watch in self.watches:
            self._pump_soon(watch)

    def _pump_soon(self, watch: Watch) -> None:
        if watch in self._pumping:
            return
        self._pumping.add(watch)
        faults, rng = self.special(watch.who, "WATCH", watch.kind) or self.faults, self.rng
        delay = rng.expovariate(1.0 / faults.news_seconds)
        if rng.random() < faults.lag:
            delay += rng.uniform(0.0, faults.lag_seconds)

        def pump() -> None:
            self._pumping.discard(watch)
            if not watch.is_open:
                return
            watch.pump(rng.choice((1, 5, 1000)))
            if watch.is_open:
                if watch.is_behind():
                    self._pump_soon(watch)
                else:
                    self._bookmark_later(watch)

        self.clock.after(delay, pump)

    def _bookmark_later(self, watch: Watch) -> None:
        def remind() -> None:
            self._reminding.discard(watch)
            if watch.is_open:
                self._pump_soon(watch)

        if watch not in self._reminding:
            self._reminding.add(watch)
            self.clock.after(61.0, remind)

    def _note(self, who: str, request: tuple[str, str, Any, Any], what: str) -> None:
        method, path = request[:2]
        if not path.endswith(("/events", "/leases/evenkeel")):
            self.say(f"{who} {method} {path.removeprefix('/api/v1/')} {what}")


class ModelClient(client.ApiClient):
    """The product's client with the model in place of its session.

    Attributes:
        is_cut: nothing it sends leaves any more; what was sent is on its way all the same.
    """

    def __init__(self, network: Network, who: str) -> None:
        self._network, self._who = network, who
        self.is_cut = False

    async def close(self) -> None:
        """Nothing to close."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = client.JSON,  # noqa: ARG002 - the model knows what it is by the path
        params: Mapping[str, str] | None = None,
        expect: client.Expected = client.SMALL,
    ) -> bytes:
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def answer(said: Answer) -> None:
            if not answered.done() and not self.is_cut:
                answered.set_result(said)

        if not self.is_cut:
            self._network.send((method, path, dict(params or {}), body), answer, self._who)
        try:
            async with asyncio.timeout(expect.seconds):
                status, payload = await answered
        except TimeoutError as error:
            raise ApiError(0, "Timeout", f"{method} {path}") from error
        if not status:
            raise ApiError(0, "Connection", f"{method} {path}")
        if status >= 400:
            raise answers.make_error(status, payload)
        return payload

    def stream(self, path: str, params: Mapping[str, str], *, silence_seconds: float) -> Any:
        response = Response(self._who, silence_seconds, self._network.rng)
        self._network.open(response, path.rsplit("/", 1)[1], dict(params))
        return Opening(response)
