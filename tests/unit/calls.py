"""Records the calls of a method, which does what it did before."""

from typing import Any

import pytest


def record_calls(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> list[tuple[Any, ...]]:
    """Return a list to which the arguments of each call are added from now on, without the object itself."""
    calls: list[tuple[Any, ...]] = []
    method = getattr(owner, name)

    def call(self: Any, *given: Any, **named: Any) -> Any:
        calls.append(given)
        return method(self, *given, **named)

    monkeypatch.setattr(owner, name, call)
    return calls
