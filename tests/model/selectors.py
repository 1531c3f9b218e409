"""Selectors and devices as tests write them: in the API's form, with values shown as the judge shows them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from scheduler.devices.cel import (
    CompileError,
    EvaluationError,
    Quantity,
    SelectedDevice,
    Version,
    compile_selector,
    read_quantity,
)
from scheduler.devices.cel import values as cel
from scheduler.devices.cel.running import Run
from scheduler.devices.cel.selecting import COST_LIMIT, compile_any
from scheduler.devices.cel.semver import Semver

Json = dict[str, Any]


class Told(NamedTuple):
    """What an expression comes to.

    Attributes:
        kind: ``ok``, ``compile`` or ``runtime``, the last two for errors.
        value: the value, shown.
        text: the error.
        cost: what the evaluation cost.
    """

    kind: str
    value: str = ""
    text: str = ""
    cost: int = 0


def make_device(written: Json) -> SelectedDevice:
    """Make a device of its form in a ResourceSlice, with its driver."""
    return SelectedDevice(
        written.get("driver", ""),
        {name: _read(value) for name, value in (written.get("attributes") or {}).items()},
        {
            name: read_quantity(str(value["value"]))
            for name, value in (written.get("capacity") or {}).items()
        },
        allow_multiple_allocations=bool(written.get("allowMultipleAllocations")),
    )


def _read(attribute: Json) -> Any:
    ((kind, value),) = attribute.items()
    if kind == "version":
        return Version(value)
    if isinstance(value, list):
        return tuple(Version(one) if kind == "versions" else one for one in value)
    return value


def judge(expression: str, device: SelectedDevice, *, raw: bool) -> Told:
    """Evaluate an expression; one of any type, of which the value is shown, if it is raw."""
    try:
        selector = compile_any(expression)[0] if raw else compile_selector(expression)
    except CompileError as error:
        return Told("compile", text=error.text)
    run = Run(device.values, selector._slots, COST_LIMIT)
    try:
        if raw:
            return Told("ok", show(selector.evaluate(run)), cost=run.cost)
        return Told("ok", show(selector.matches(device)))
    except EvaluationError as error:
        return Told("runtime", text=error.text, cost=run.cost)


def show(value: Any) -> str:
    """Write a value so that values of different types or contents never look alike."""
    return _SHOWS[type(value)](value)


def _show_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _show_list(items: list[Any]) -> str:
    return f"[{', '.join(map(show, items))}]"


def _show_map(entries: dict[Any, Any]) -> str:
    pairs = zip(cel.iterate_keys(entries), entries.values(), strict=True)
    return f"{{{', '.join(sorted(f'{show(key)}: {show(value)}' for key, value in pairs))}}}"


def _show_optional(value: cel.Optional) -> str:
    return f"optional({show(value.values[0])})" if value.values else "optional.none()"


_SHOWS: dict[type, Callable[[Any], str]] = {
    type(None): lambda _: "null",
    bool: json.dumps,
    int: str,
    cel.Uint: lambda value: f"{int(value)}u",
    float: lambda value: f"double({cel.show_double(value)})",
    str: _show_text,
    bytes: lambda value: f"b{value.hex()}",
    list: _show_list,
    dict: _show_map,
    cel.OuterMap: _show_map,
    cel.TypeName: lambda value: f"type({value})",
    cel.Optional: _show_optional,
    cel.Duration: lambda value: f"duration({value.nanos})",
    cel.Timestamp: lambda value: f"timestamp({value.nanos // 10**9}.{value.nanos % 10**9:09})",
    Quantity: lambda value: f"quantity({value.as_float():g})",
    Semver: lambda value: f"semver({value.text})",
    cel.Address: lambda value: f"ip({value.text})",
    cel.Network: lambda value: f"cidr({value.text})",
    cel.Url: lambda value: f"url({value.text})",
    cel.NamedFormat: lambda value: f"format({value.name})",
}
