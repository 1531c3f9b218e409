"""A kernel that is called without numba's look at types answers as with it, whatever it is handed."""

import importlib
import pkgutil
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from scheduler import kernels
from scheduler.config import Config
from scheduler.engine.warm import warm
from scheduler.kernels import _direct, _jit
from scheduler.schema.columns import Ints
from tests.unit import compiled

pytestmark = compiled.needs_jit


class _Pair(NamedTuple):
    values: Any
    factor: int


class _Other(NamedTuple):
    values: Any
    factor: int


@_jit.kernel
def _weighted(pair: _Pair, at: int, twice: bool) -> float:
    total = 0.0
    for i in range(at, pair.values.size):
        total += pair.values[i] * pair.factor * (i + 1)
    return total * 2 if twice else total


class _Nested(NamedTuple):
    pair: Any
    table: Any


@_jit.kernel
def _nested(given: _Nested) -> float:
    return float(given.pair.values[0] * given.pair.factor + given.table.flat[1])


@_jit.kernel
def _inner(values: Ints) -> int:
    return int(values[0])


@_jit.kernel
def _outer(values: Ints) -> int:
    return _inner(values) + 1


def _expected(pair: _Pair | _Other, at: int, *, twice: bool) -> float:
    found = sum(float(x) * pair.factor * (i + 1) for i, x in enumerate(pair.values) if i >= at)
    return found * (2 if twice else 1)


_VALUES = np.array([3, 1, 4, 1, 5, 9], np.int64)


def _read_only() -> Ints:
    values = _VALUES.copy()
    values.flags.writeable = False
    return values


def _moved_by_a_byte() -> Ints:
    return np.frombuffer(bytearray(b"\0" + _VALUES.tobytes()), np.int64, offset=1)


@pytest.mark.parametrize(
    "values",
    [
        _VALUES,
        _VALUES[::2],
        _VALUES[::-1],
        np.repeat(_VALUES, 2).reshape(-1, 2)[:, 0],
        _VALUES.astype(np.int32),
        _VALUES.astype(np.int16),
        _VALUES.astype(np.float64) / 7,
        _VALUES.astype(np.uint64),
        np.zeros(0, np.int64),
        _read_only(),
        _moved_by_a_byte(),
    ],
    ids=lambda values: f"{values.dtype} {values.strides} {values.flags.writeable}",
)
def test_a_call_answers_for_arrays_of_another_kind_than_the_first(values: Any) -> None:
    for given in (_VALUES, values, _VALUES):
        pair = _Pair(given, 3)
        assert _weighted(pair, 1, False) == pytest.approx(_expected(pair, 1, twice=False))


def test_a_call_answers_for_bundles_and_numbers_of_another_kind_than_the_first() -> None:
    first = _Pair(_VALUES, 3)
    assert _weighted(first, 0, True) == _expected(first, 0, twice=True)
    for pair in (_Pair(_VALUES, np.int64(2)), _Pair(_VALUES, True), _Other(_VALUES, 5), _Pair(_VALUES, 2.5)):  # type: ignore[arg-type]  # fmt: skip
        assert _weighted(pair, np.int64(2), np.True_) == _expected(pair, 2, twice=True)  # type: ignore[arg-type]
    assert _weighted(first, 0, 1) == _expected(first, 0, twice=True)  # type: ignore[arg-type]


def test_a_bundle_that_was_seen_is_read_anew() -> None:
    pair = _Pair(_VALUES.copy(), 1)
    before = _weighted(pair, 0, False)
    pair.values[0] += 10
    assert _weighted(pair, 0, False) == before + 10


def test_a_call_with_too_few_arguments_is_refused_as_by_numba() -> None:
    pair = _Pair(_VALUES, 3)
    assert _weighted(pair, 0, False)
    with pytest.raises(TypeError, match="not enough arguments"):
        _weighted(pair, 0)  # type: ignore[call-arg]
    with pytest.raises(numba.TypingError):
        _weighted(pair, "0", False)  # type: ignore[arg-type]


def test_a_kernel_calls_another_that_python_calls_too() -> None:
    assert _inner(_VALUES) == 3
    assert _outer(_VALUES) == 4
    assert _inner(_VALUES[::2]) == 3
    assert _outer(_VALUES[::2]) == 4


def test_a_bundle_within_a_bundle_is_looked_into() -> None:
    table = np.arange(6, dtype=np.int64).reshape(2, 3)
    halves = _VALUES.astype(np.float64) / 2
    for pair in (_Pair(_VALUES, 3), _Pair(halves, 3), _Other(_VALUES, 3), _Pair(_VALUES, 4)):
        for there in (table, table.T, table[0], table.astype(np.int32), np.stack((table, table))):
            expected = pair.values[0] * pair.factor + there.flat[1]
            assert _nested(_Nested(pair, there)) == expected


def test_names_may_be_given_as_to_a_function() -> None:
    pair = _Pair(_VALUES, 3)
    for _ in range(2):
        assert _weighted(pair, at=0, twice=True) == _expected(pair, 0, twice=True)
        assert _weighted(pair, 0, True) == _expected(pair, 0, twice=True)


def test_what_a_scheduler_calls_goes_through_numba_only_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every = {
        kernel
        for module in pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}.")
        for kernel in vars(importlib.import_module(module.name)).values()
        if isinstance(kernel, _direct.Direct)
    }
    # What other tests called first with types of their own is forgotten.
    for kernel in every:
        monkeypatch.setattr(kernel, "_known", None)
    warm(Config())
    called = {kernel.__name__ for kernel in every if kernel._known is not None}
    assert {"place_run", "place_one", "enter"} <= called

    def through_numba(*_: object) -> None:
        raise AssertionError("a kernel was handed another type than before")

    for kernel in every:
        monkeypatch.setattr(kernel, "dispatcher", through_numba)
        if kernel._known is None:
            monkeypatch.setattr(kernel, "_known", ([], through_numba))
    warm(Config())
