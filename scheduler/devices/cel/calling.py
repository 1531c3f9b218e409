"""Calls as functions: those that look at all arguments, and those that may do without some."""

from __future__ import annotations

import contextlib
from typing import Any

from scheduler.devices.cel.errors import CelError
from scheduler.devices.cel.overloads import Function, Overload, Work
from scheduler.devices.cel.running import Run
from scheduler.devices.cel.syntax import Code, Constant
from scheduler.devices.cel.values import FAILED, FALSE_KEY, TRUE_KEY, Optional, as_key

_NO_OVERLOAD = "no such overload"


def make_logic(terms: list[Code], *, decisive: bool) -> Code:
    """``&&`` and ``||``: the first term that decides ends it, an error counts only if none does."""

    def decide(run: Run) -> Any:
        problem: CelError | None = None
        for term in terms:
            try:
                value = term(run)
            except CelError as error:
                problem = problem or error
                continue
            if value is decisive:
                return decisive
            if type(value) is not bool:
                problem = problem or CelError(_NO_OVERLOAD)
        if problem is not None:
            raise problem
        return not decisive

    return decide


def make_lenient(code: Code) -> Code:
    """Return the condition on which loops go on: anything but false, also an error."""

    def check(run: Run) -> Any:
        run.charge(1)
        try:
            return code(run) is not False
        except CelError:
            return True

    return check


def make_alternative(code: Code, otherwise: Code, *, takes_value: bool) -> Code:
    """``or`` and ``orValue``: what is there, or else something else."""

    def choose(run: Run) -> Any:
        value = code(run)
        if type(value) is not Optional:
            raise CelError(_NO_OVERLOAD)
        if not value.values:
            return otherwise(run)
        return value.values[0] if takes_value else value

    return choose


def make_membership(code: Code, items: list[Any]) -> Code | None:
    """``x in [constants]``, which is free; none if some are no texts, numbers or booleans."""
    if not items:
        return Constant(value=False)
    kept = set()
    for item in items:
        if not isinstance(item, bool | int | float | str):
            return None
        kept.add((TRUE_KEY if item else FALSE_KEY) if type(item) is bool else item)

    def look(run: Run) -> Any:
        value = code(run)
        cls = type(value)
        if cls is str:
            return value in kept
        if cls is bool:
            return (TRUE_KEY if value else FALSE_KEY) in kept
        if isinstance(value, int | float):
            return value in kept
        as_key(value)
        return False

    return look


def make_call(
    function: Function, codes: list[Code], known: Work | None, *, overload: Overload | None
) -> Code:
    """Return a call. If an argument is an error the call is charged all the same, in the way that cel-go does it."""
    cost = function.cost or (function.sure_cost if overload else None) or _cost_one
    find = function.choose(overload)
    is_eager = len(codes) < 3 and known is None and (overload is not None or function.is_single)

    def fail(run: Run, args: list[Any]) -> None:
        """Charge a call whose argument after these is an error."""
        rest = codes[len(args) + 1 :]
        if rest and not is_eager:
            return
        given = [*args, FAILED]
        for code in rest:
            given.append(FAILED)
            with contextlib.suppress(CelError):
                given[-1] = code(run)
        run.charge(cost(*given))

    def call(run: Run) -> Any:
        args: list[Any] = []
        try:
            for code in codes:
                args.append(code(run))  # noqa: PERF401 - those before an error are needed
        except CelError:
            fail(run, args)
            raise
        run.charge(cost(*args))
        return (known or find(tuple(args)))(run, *args)

    if len(codes) != 2 or known is not None:
        return call
    left, right = codes

    def call_two(run: Run) -> Any:
        args: list[Any] = []
        try:
            one = left(run)
            args.append(one)
            two = right(run)
        except CelError:
            fail(run, args)
            raise
        run.charge(cost(one, two))
        return find((one, two))(run, one, two)

    return call_two


def _cost_one(*_args: Any) -> int:
    return 1
