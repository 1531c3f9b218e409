"""Selectors: compiled once, put to devices many times."""

from __future__ import annotations

from scheduler.devices.cel.checker import Checked, check
from scheduler.devices.cel.compiling import compile_tree
from scheduler.devices.cel.device import SelectedDevice
from scheduler.devices.cel.errors import (
    CelError,
    CompileError,
    Complaint,
    Complaints,
    EvaluationError,
    LimitError,
    show_complaints,
)
from scheduler.devices.cel.mentions import find_attributes
from scheduler.devices.cel.parser import parse
from scheduler.devices.cel.quantity import Quantity
from scheduler.devices.cel.running import Run
from scheduler.devices.cel.semver import Semver
from scheduler.devices.cel.syntax import Code
from scheduler.devices.cel.validating import validate
from scheduler.devices.cel.values import (
    TYPES,
    Address,
    Duration,
    NamedFormat,
    Network,
    Optional,
    OuterMap,
    Timestamp,
    TypeName,
    Uint,
    Url,
)

COST_LIMIT = 1_000_000
_DEEP = "expression recursion limit exceeded"


class Selector:
    """A compiled selector.

    Attributes:
        text: as it was written.
        attributes: the attributes that its answer can depend on, as ``domain/id``, beside those that are
            ``BROKEN``; ``None`` if it can be any.
        spent: what the last evaluation of a device has cost.
    """

    __slots__ = ("_code", "_slots", "attributes", "spent", "text")

    def __init__(
        self, text: str, code: Code, slots: int, attributes: frozenset[str] | None
    ) -> None:
        self.text = text
        self.attributes = attributes
        self.spent = 0
        self._code = code
        self._slots = slots

    def matches(self, device: SelectedDevice, budget: int = COST_LIMIT) -> bool:
        """Say whether a device matches.

        Raises:
            EvaluationError: the expression has no answer for it.
        """
        if device.problem:
            raise EvaluationError(device.problem)
        run = Run(device.values, self._slots, budget)
        try:
            return _read_answer(self.evaluate(run))
        finally:
            self.spent = run.cost

    def evaluate(self, run: Run) -> object:
        """Return what the expression comes to in a run.

        Raises:
            EvaluationError: it comes to nothing.
        """
        try:
            value = self._code(run)
            run.charge(0)
        except CelError as error:
            if run.cost > run.limit:
                raise EvaluationError(str(LimitError())) from None
            raise EvaluationError(str(error)) from None
        except LimitError as error:
            raise EvaluationError(str(error)) from None
        except RecursionError:
            raise EvaluationError(_DEEP) from None
        return value


def _read_answer(value: object) -> bool:
    """Return an answer; one that may be missing counts if it is there."""
    inner = value
    while type(inner) is Optional and inner.values:
        inner = inner.values[0]
    if type(inner) is bool:
        return inner
    reason = _NO_BOOL.get(type(inner), "type conversion error from {} to 'bool'")
    name = TYPES[type(inner)][0]
    reason = reason.format(_NO_BOOL_NAMES.get(type(inner), f"'{name}'"))
    raise EvaluationError(
        f"CEL result of type {TYPES[type(value)][0]} could not be converted to bool: {reason}"
    )


_NO_BOOL = {
    int: "unsupported type conversion from 'int' to bool",
    Uint: "unsupported type conversion from 'uint' to bool",
    str: "unsupported native conversion from string to 'bool'",
    TypeName: "type conversion not supported for 'type'",
    Optional: "optional.none() dereference",
}
_NO_BOOL_NAMES = {
    float: "Double",
    bytes: "Bytes",
    list: "list",
    dict: "map",
    OuterMap: "map",
    Semver: "'Semver'",
    Quantity: "'Quantity'",
    Address: "'IP'",
    Network: "'CIDR'",
    Url: "'URL'",
    NamedFormat: "'Format'",
    Duration: "'Duration'",
    Timestamp: "'Timestamp'",
}


def compile_selector(text: str) -> Selector:
    """Compile a selector; the caller keeps it.

    Raises:
        CompileError: the text is none.
    """
    selector, checked = compile_any(text)
    if checked.kind.name not in {"bool", "dyn"}:
        raise CompileError(f"must evaluate to bool or the unknown type, not {checked.kind.spell()}")
    return selector


def compile_any(text: str) -> tuple[Selector, Checked]:
    """Compile an expression of any type.

    Raises:
        CompileError: the text is none.
    """
    try:
        tree = parse(text)
        checked = check(tree)
        validate(tree)
        code = compile_tree(tree)
    except Complaints as wrong:
        raise CompileError(
            f"compilation failed: {show_complaints(text, wrong.complaints)}"
        ) from None
    except CelError as error:
        raise CompileError(f"program instantiation failed: {error}") from None
    except RecursionError:
        deep = show_complaints(text, [Complaint(-1, _DEEP)])
        raise CompileError(f"compilation failed: {deep}") from None
    return Selector(text, code, checked.slots, find_attributes(tree)), checked
