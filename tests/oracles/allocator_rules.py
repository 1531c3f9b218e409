"""Whether a request may have a device beside what was taken before it: upstream's rules, from raw objects.

Nothing is kept but the list of devices taken so far; whatever a rule must know it works out of that list again.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tests.oracles import allocator_constraints as constraints
from tests.oracles import allocator_pools as pools_of
from tests.oracles.allocator_capacity import Amounts, UncountableError, fits, taken
from tests.oracles.allocator_pools import Counters, Device, Pool, exact

Json = dict[str, Any]
Id = tuple[str, str, str]
# What an expression says of a device: the expression, the driver, the device.
Judge = Callable[[str, str, Json], bool]
SKIPPING = "DRAOptionalNodeOperations"


class CompileError(Exception):
    """An expression is none; the text is CEL's."""


class EvaluationError(Exception):
    """An expression has no answer for this device; the text is CEL's."""


class RefusedError(Exception):
    """An error that ends the attempt on all nodes."""


@dataclass(frozen=True)
class Request:
    """A request that is served, which may be an alternative of another one."""

    claim: int
    index: int
    parent: str
    body: Json
    devices: tuple[Device, ...] | None = None
    count: int = 0

    @property
    def name(self) -> str:
        return f"{self.parent}/{self.body['name']}" if self.parent else self.body["name"]

    @property
    def is_admin(self) -> bool:
        return not self.parent and bool(self.body.get("adminAccess"))

    def is_among(self, names: list[str]) -> bool:
        return self.name in names or self.parent in names


@dataclass(frozen=True)
class Taken:
    request: Request
    device: Device
    capacity: Amounts
    draws_counters: bool


@dataclass(frozen=True)
class Attempt:
    """What was taken, in order, and which alternative serves each request."""

    taken: tuple[Taken, ...] = ()
    chosen: tuple[Request, ...] = ()

    def of_claim(self, claim: int) -> list[Taken]:
        return [one for one in self.taken if one.request.claim == claim]


def key_of(claim: Json) -> str:
    namespace = claim["metadata"].get("namespace")
    name: str = claim["metadata"]["name"]
    return f"{namespace}/{name}" if namespace else name


class Rules:
    """One world. With ``is_ours`` these differ from upstream, always towards more that is feasible:

    a constraint that refuses one of all devices is no error; a counter set that is overdrawn refuses its own devices
    only; admin access draws no counters, and what it takes counts within its claim only; and an expression or an
    amount that fails on a device rules out this device only.
    """

    def __init__(self, world: Json, judge: Judge, *, is_ours: bool) -> None:
        self.judge, self.is_ours = judge, is_ours
        self.on = pools_of.features_of(world)
        self.node: Json = world["node"]
        self.classes: dict[str, Json] = {
            one["metadata"]["name"]: one for one in world.get("classes") or ()
        }
        self.claims: list[Json] = world.get("claims") or []
        slices = pools_of.with_taints_of_rules(world.get("slices") or (), world.get("rules") or ())
        self.pools = pools_of.gather(slices, self.node, self.on)
        self.exclusive: set[Id] = set()
        self.shared: dict[Id, Amounts] = {}
        self._count(world.get("allocated") or ())
        self.matches: dict[tuple[int, str, Id], bool] = {}

    def _count(self, claims: Iterable[Json]) -> None:
        for claim in claims:
            allocation = (claim.get("status") or {}).get("allocation") or {}
            for one in (allocation.get("devices") or {}).get("results") or ():
                if one.get("adminAccess"):
                    continue
                device = one["driver"], one["pool"], one["device"]
                if "ConsumableCapacity" not in self.on or one.get("shareID") is None:
                    self.exclusive.add(device)
                    continue
                held = self.shared.setdefault(device, {})
                for name, amount in (one.get("consumedCapacity") or {}).items():
                    held[name] = held.get(name, Fraction(0)) + exact(amount)

    def where(self, request: Request) -> str:
        return f"claim {key_of(self.claims[request.claim])}, request {request.body['name']}"

    def may_choose(self, request: Request, device: Device) -> bool:
        """By the expressions of its class and its own, and by the nodes that the device is for."""
        if "DeviceBindingAndStatus" not in self.on and device.body.get("bindingConditions"):
            return False
        key = request.claim, request.name, device.id
        if key not in self.matches:
            try:
                self.matches[key] = self._matches(request, device)
            except RefusedError:
                if not self.is_ours:
                    raise
                self.matches[key] = False
        return self.matches[key]

    def _matches(self, request: Request, device: Device) -> bool:
        of_class = self.classes[request.body["deviceClassName"]]
        claim = self.claims[request.claim]
        for owner, selectors in (
            (f"class {of_class['metadata']['name']}", of_class["spec"].get("selectors") or ()),
            (f"claim {key_of(claim)}", request.body.get("selectors") or ()),
        ):
            for i, selector in enumerate(selectors):
                try:
                    if not self.judge(selector["cel"]["expression"], device.driver, device.body):
                        return False
                except CompileError as problem:
                    raise RefusedError(
                        f"{owner}: selector #{i}: CEL compile error: {problem}"
                    ) from None
                except EvaluationError as problem:
                    raise RefusedError(
                        f"{owner}: selector #{i} on device {device.words}: CEL runtime error: {problem}"
                    ) from None
        if device.slice["spec"].get("perDeviceNodeSelection"):
            return pools_of.suits(device.body, self.node)
        return True

    def has_room(
        self, request: Request, device: Device, held: Mapping[str, Fraction], words: str
    ) -> bool:
        """Whether its capacities suffice beside what is held of them."""
        if "ConsumableCapacity" not in self.on:
            return True
        try:
            return fits(request.body.get("capacity"), device, self._is_milli(), held)
        except UncountableError as problem:
            if self.is_ours:
                return False
            raise RefusedError(f"{self.where(request)}: {words}: {problem}") from None

    def _is_milli(self) -> bool:
        return "FractionalCapacityRange" in self.on

    def _shares(self, device: Device) -> bool:
        return device.is_shareable and "ConsumableCapacity" in self.on

    def _counting(self, request: Request, device: Device, attempt: Attempt) -> list[Taken]:
        """Who has taken the device in this attempt, as far as this request is concerned."""
        return [
            one
            for one in attempt.taken
            if one.device.id == device.id
            and not (self.is_ours and one.request.is_admin and one.request.claim != request.claim)
        ]

    def is_in_use(self, request: Request, device: Device, attempt: Attempt) -> bool:
        takers = [] if self._shares(device) else self._counting(request, device, attempt)
        if request.is_admin:
            return any(one.request.claim == request.claim for one in takers)
        return device.id in self.exclusive or bool(takers)

    def held(self, request: Request, device: Device, attempt: Attempt) -> Amounts:
        """What is held of each capacity, by allocated claims and in this attempt."""
        total = dict(self.shared.get(device.id, {}))
        for one in self._counting(request, device, attempt):
            for name, amount in one.capacity.items():
                total[name] = total.get(name, Fraction(0)) + amount
        return total

    def take(
        self, request: Request, device: Device, attempt: Attempt, *, must: bool
    ) -> Taken | None:
        """Give it a device that may be chosen, or nothing; ``must`` if it can have no other.

        Raises:
            RefusedError: a constraint is in the way of a device that it must have.
        """
        draws = self._draws(request, device, attempt)
        is_free = (
            not self.is_in_use(request, device, attempt)
            and not self._skips_too_much(device)
            and (not device.draws or "PartitionableDevices" in self.on)
            and (not draws or self._suits_groups(device, attempt))
            and (not draws or self._has_counters(device, attempt))
            and ("DeviceTaints" not in self.on or _tolerates(request, device))
        )
        if not is_free or not self._keeps_all(request, device, attempt, must=must):
            return None
        held = self.held(request, device, attempt)
        words = f"rechecking capacity for device {device.words}"
        if not self.has_room(request, device, held, words):
            return None
        capacity = (
            taken(request.body.get("capacity"), device, self._is_milli())
            if self._shares(device)
            else {}
        )
        return Taken(request, device, capacity, draws)

    def _draws(self, request: Request, device: Device, attempt: Attempt) -> bool:
        """A device that is shared already has drawn its counters."""
        if self.is_ours and request.is_admin:
            return False
        is_shared_already = self._shares(device) and (
            device.id in self.shared
            or any(
                one.device.id == device.id and not (self.is_ours and one.request.is_admin)
                for one in attempt.taken
            )
        )
        return bool(device.draws) and not is_shared_already

    def _keeps_all(self, request: Request, device: Device, attempt: Attempt, *, must: bool) -> bool:
        claim = self.claims[request.claim]
        is_kept = all(
            self._keeps(constraint, request, device, attempt)
            for constraint in claim["spec"]["devices"].get("constraints") or ()
        )
        if not is_kept and must and not self.is_ours:
            raise RefusedError(
                f"{self.where(request)}: cannot add device {device.words}"
                " because a claim constraint would not be satisfied"
            )
        return is_kept

    def _skips_too_much(self, device: Device) -> bool:
        # The variant of the allocator that runs by default does not look at this.
        if not (self.on & pools_of.LATER and device.slice["spec"].get("skipNodeOperations")):
            return False
        declared = (self.node.get("status") or {}).get("declaredFeatures") or ()
        return not ("OptionalNodeOperations" in self.on and SKIPPING in declared)

    def _pool(self, device: Device) -> Pool:
        return next(one for one in self.pools if (one.driver, one.name) == device.id[:2])

    def _drawing(self, device: Device, attempt: Attempt) -> list[Device]:
        """The devices of its pool that draw on counters already: allocated, then in this attempt."""
        pool = self._pool(device)
        allocated = [one for one in pool.devices + pool.others if self._is_allocated(one)]
        return allocated + [
            one.device
            for one in attempt.taken
            if one.draws_counters and one.device.id[:2] == device.id[:2]
        ]

    def _is_allocated(self, device: Device) -> bool:
        return device.id in self.exclusive or device.id in self.shared

    def _has_counters(self, device: Device, attempt: Attempt) -> bool:
        left: Counters = {name: dict(of) for name, of in self._pool(device).counters.items()}
        for one in [*self._drawing(device, attempt), device]:
            for draw in one.draws:
                for name, counter in (draw.get("counters") or {}).items():
                    left[draw["counterSet"]][name] -= exact(counter["value"])
        own = {draw["counterSet"] for draw in device.draws}
        return all(
            amount >= 0
            for name, of in left.items()
            if name in own or not self.is_ours
            for amount in of.values()
        )

    def _suits_groups(self, device: Device, attempt: Attempt) -> bool:
        if "CompatibilityGroups" not in self.on:
            return True
        drawing = self._drawing(device, attempt)
        return all(
            constraints.groups_admit(
                [
                    set(draw.get("compatibilityGroups") or ())
                    for one in drawing
                    for draw in one.draws
                    if draw["counterSet"] == own["counterSet"]
                ],
                set(own.get("compatibilityGroups") or ()),
            )
            for own in device.draws
        )

    def _keeps(self, constraint: Json, request: Request, device: Device, attempt: Attempt) -> bool:
        names = constraint.get("requests") or []
        if names and not request.is_among(names):
            return True
        attribute = constraint.get("matchAttribute") or constraint["distinctAttribute"]
        before = [
            constraints.attribute_of(one.device, attribute)
            for one in attempt.of_claim(request.claim)
            if not names or one.request.is_among(names)
        ]
        is_list = "ListTypeAttributes" in self.on
        decide = (
            constraints.matches if constraint.get("matchAttribute") else constraints.is_distinct
        )
        return decide(before, constraints.attribute_of(device, attribute), is_list=is_list)


def _tolerates(request: Request, device: Device) -> bool:
    return all(
        any(_covers(one, taint) for one in request.body.get("tolerations") or ())
        for taint in device.body.get("taints") or ()
        if taint.get("effect") in {"NoSchedule", "NoExecute"}
    )


def _covers(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Equal":
        return bool((toleration.get("value") or "") == (taint.get("value") or ""))
    return bool(operator == "Exists")
