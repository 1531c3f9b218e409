"""What came of the specs, side by side."""

from __future__ import annotations

from tests.conformance.lanes import Results
from tests.conformance.suite import Result

_PREFIX = "[sig-scheduling] "
_WIDTH = 88


def lost(results: Results) -> list[str]:
    """The specs that kube-scheduler passes and Evenkeel does not."""
    return [
        spec
        for spec, found in results.items()
        if found["kube-scheduler"].state == "passed" and found["evenkeel"].state != "passed"
    ]


def drawn(results: Results) -> str:
    """A line a spec, and below it why any was not passed."""
    lines = [f"{'spec':{_WIDTH}} {'kube-scheduler':>16} {'evenkeel':>16}"]
    reasons = []
    for spec, found in results.items():
        peer, ours = found["kube-scheduler"], found["evenkeel"]
        lines.append(f"{_short(spec):{_WIDTH}} {_cell(peer):>16} {_cell(ours):>16}")
        for name, one in found.items():
            if one.message:
                first = one.message.strip().partition("\n")[0]
                reasons.append(f"{_short(spec)}\n  {name}, {one.state}: {first}")
    n_passed = {
        name: sum(found[name].state == "passed" for found in results.values())
        for name in ("kube-scheduler", "evenkeel")
    }
    total = f"passed of {len(results)}"
    lines.append(f"{total:{_WIDTH}} {n_passed['kube-scheduler']:>16} {n_passed['evenkeel']:>16}")
    return "\n".join([*lines, *(["", *reasons] if reasons else [])])


def as_json(results: Results) -> list[dict[str, object]]:
    """The same for programs."""
    return [
        {"spec": spec, **{name: one._asdict() for name, one in found.items()}}
        for spec, found in results.items()
    ]


def _cell(one: Result) -> str:
    return f"{one.state} {one.seconds:5.0f} s"


def _short(spec: str) -> str:
    text = spec.removeprefix(_PREFIX).removesuffix(" [Serial]")
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
