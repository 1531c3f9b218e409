"""Devices for claims on one node, as kube-scheduler's allocator finds them: the first solution of a plain search.

Expressions are judged by whoever calls; see ``allocator_rules.Judge``.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.oracles import allocator_results
from tests.oracles.allocator_pools import Device
from tests.oracles.allocator_rules import (
    Attempt,
    Judge,
    RefusedError,
    Request,
    Rules,
    Taken,
    key_of,
)

Json = dict[str, Any]
# The devices of each request, by claim and in order.
Allocation = tuple[tuple[tuple[str, tuple[str, ...]], ...], ...]
LIMIT = 32
STEPS = 20_000


class TooManyStepsError(Exception):
    """The world is too large for a search that repeats itself."""


class _TooManyDevicesError(Exception):
    """More devices than a claim may have: back to the nearest choice among alternatives, or the claim before."""


def allocate(world: Json, judge: Judge, steps: int = STEPS) -> Json:
    """Upstream's answer: ``results``, one for each claim or none, and ``error``.

    Raises:
        TooManyStepsError: the search is too long for this twin.
    """
    search = Search(world, judge, is_ours=False, steps=steps)
    try:
        found = next(search.solutions(), None)
        if found is not None:
            return {"results": allocator_results.write(search.rules, found), "error": ""}
    except RefusedError as problem:
        return {"results": None, "error": str(problem)}
    is_invalid = any(pool.is_invalid for pool in search.rules.pools)
    return {
        "results": None,
        "error": "invalid resource pools were encountered" if is_invalid else "",
    }


def solve_all(world: Json, judge: Judge, steps: int = STEPS) -> Iterator[Allocation]:
    """All allocations that are right by our own rules, the first one by upstream's order.

    Whoever wants to know no more than whether there is one takes the first.

    Raises:
        RefusedError: claims are refused before any search.
        TooManyStepsError: the world is too large for this.
    """
    search = Search(world, judge, is_ours=True, steps=steps)
    for found in search.solutions():
        yield tuple(
            tuple((one.request.name, one.device.id) for one in found.of_claim(claim))
            for claim in range(len(search.rules.claims))
        )


class Search:
    """One world, searched in upstream's order: claims, requests, alternatives, and devices from the first one on."""

    def __init__(self, world: Json, judge: Judge, *, is_ours: bool, steps: int) -> None:
        self.rules = Rules(world, judge, is_ours=is_ours)
        self.steps = steps
        self.requests: list[list[list[Request]]] = []

    def solutions(self) -> Iterator[Attempt]:
        """All of them, in upstream's order.

        Raises:
            RefusedError: the claims, or the search, meet an error.
            TooManyStepsError: it takes too long.
        """
        self.requests = [self._prepare(i) for i in range(len(self.rules.claims))]
        yield from self._serve(0, 0, Attempt())

    # Before the search

    def _prepare(self, claim: int) -> list[list[Request]]:
        devices = self.rules.claims[claim]["spec"].get("devices") or {}
        prepared, least = [], 0
        for index, request in enumerate(devices.get("requests") or ()):
            prepared.append(self._alternatives(claim, index, request))
            fewest = min(one.count for one in prepared[-1])
            if fewest > LIMIT - least:
                raise RefusedError(
                    f"claim {key_of(self.rules.claims[claim])}, request {request['name']}: adding {fewest} devices exceeds"
                    f" the claim limit of {LIMIT}, with {least} already accounted for"
                )
            least += fewest
        for i, constraint in enumerate(devices.get("constraints") or ()):
            if not (constraint.get("matchAttribute") or constraint.get("distinctAttribute")):
                raise RefusedError(
                    f"claim {key_of(self.rules.claims[claim])}, constraint #{i}: empty constraint (unsupported constraint type?)"
                )
        return prepared

    def _alternatives(self, claim: int, index: int, request: Json) -> list[Request]:
        where, name = f"claim {key_of(self.rules.claims[claim])}", request["name"]
        options = request.get("firstAvailable") or ()
        if options and "PrioritizedList" not in self.rules.on:
            raise RefusedError(
                f"{where}, request {name}: has subrequests, but the DRAPrioritizedList feature is disabled"
            )
        exactly = request.get("exactly") or {}
        if "ConsumableCapacity" not in self.rules.on:
            off = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
            if exactly.get("capacity") is not None:
                raise RefusedError(f"{where}, request {name}: {off}")
            for one in options:
                if one.get("capacity") is not None:
                    raise RefusedError(f"{where}, subrequest {one['name']}: {off}")
        if options:
            return [self._checked(Request(claim, index, name, one)) for one in options]
        return [self._checked(Request(claim, index, "", exactly | {"name": name}))]

    def _checked(self, request: Request) -> Request:
        body = request.body
        where = self.rules.where(request)
        for i, selector in enumerate(body.get("selectors") or ()):
            if selector.get("cel") is None:
                raise RefusedError(
                    f"{where}, selector #{i}: CEL expression empty (unsupported selector type?)"
                )
        if body.get("derivedAttributes"):
            raise RefusedError(
                f"{where}: cannot handle request with derived attributes, the feature is disabled"
            )
        if "AdminAccess" not in self.rules.on and body.get("adminAccess") is not None:
            raise RefusedError(f"{where}: admin access is requested, but the feature is disabled")
        wanted = body.get("deviceClassName") or ""
        if not wanted:
            raise RefusedError(f"{where}: missing device class name (unsupported request type?)")
        if wanted not in self.rules.classes:
            raise RefusedError(
                f"{where}: could not retrieve device class {wanted}:"
                f' deviceclass.resource.k8s.io "{wanted}" not found'
            )
        mode = body.get("allocationMode") or ""
        if mode == "ExactCount":
            return replace(request, count=body.get("count", 0))
        if mode == "All":
            devices = tuple(self._all(request, where))
            return replace(request, devices=devices, count=len(devices))
        raise RefusedError(f"{where}: unsupported count mode {mode}")

    def _all(self, request: Request, where: str) -> Iterator[Device]:
        """All devices that may be chosen, in use or not, but those that could not serve it even if they were free."""
        for pool in self.rules.pools:
            for is_so, words in (
                (pool.is_incomplete, "being updated"),
                (pool.is_invalid, "invalid"),
            ):
                if is_so:
                    raise RefusedError(
                        f"{where}: asks for all devices, but resource pool {pool.words} is currently {words}"
                    )
            for device in pool.devices:
                words = f"checking capacity for device {device.body['name']}"
                if self.rules.may_choose(request, device) and self.rules.has_room(
                    request, device, {}, words
                ):
                    yield device

    # The search

    def _step(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise TooManyStepsError

    def _serve(self, claim: int, index: int, attempt: Attempt) -> Iterator[Attempt]:
        """Serve a claim's requests from this one on, and all claims behind it."""
        self._step()
        if claim == len(self.rules.claims):
            yield attempt
            return
        if index == len(self.requests[claim]):
            try:
                yield from self._serve(claim + 1, 0, attempt)
            except _TooManyDevicesError:
                return
            return
        options = self.requests[claim][index]
        if not options[0].parent:
            chosen = replace(attempt, chosen=(*attempt.chosen, options[0]))
            yield from self._serve_by(options[0], 0, 0, chosen)
            return
        is_always_too_many = True
        for option in options:
            try:
                chosen = replace(attempt, chosen=(*attempt.chosen, option))
                yield from self._serve_by(option, 0, 0, chosen)
                is_always_too_many = False
            except _TooManyDevicesError:
                continue
        if is_always_too_many:
            raise _TooManyDevicesError

    def _serve_by(
        self, request: Request, number: int, start: int, attempt: Attempt
    ) -> Iterator[Attempt]:
        """Take the device of this number for a request: candidates come behind the one before it."""
        self._step()
        if request.devices is not None and not request.devices:
            return
        if number >= request.count:
            yield from self._serve(request.claim, request.index + 1, attempt)
            return
        if request.count - number > LIMIT - len(attempt.of_claim(request.claim)):
            raise _TooManyDevicesError
        if request.devices is not None:
            device = request.devices[number]
            one = self.rules.take(request, device, attempt, must=True)
            if one is not None:
                yield from self._serve_by(request, number + 1, 0, _with(attempt, one))
            return
        candidates = self._candidates()
        for place in range(start, len(candidates)):
            one = self._try(request, candidates[place], attempt)
            if one is not None:
                yield from self._serve_by(request, number + 1, place + 1, _with(attempt, one))

    def _candidates(self) -> list[Device]:
        usable = [one for one in self.rules.pools if not (one.is_incomplete or one.is_invalid)]
        return [device for pool in usable for device in pool.devices]

    def _try(self, request: Request, device: Device, attempt: Attempt) -> Taken | None:
        """Expressions are asked only about devices that are not in use."""
        rules = self.rules
        if rules.is_in_use(request, device, attempt) or not rules.may_choose(request, device):
            return None
        held = rules.held(request, device, attempt)
        if not rules.has_room(
            request, device, held, f"checking capacity for device {device.words}"
        ):
            return None
        return rules.take(request, device, attempt, must=False)


def _with(attempt: Attempt, one: Taken) -> Attempt:
    return replace(attempt, taken=(*attempt.taken, one))
