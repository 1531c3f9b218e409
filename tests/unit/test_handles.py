"""Handles: a kernel reads what Python put into a field, whatever that is and whenever it was put there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from scheduler.kernels import _handles, _jit, compiling
from scheduler.schema import columns as c
from scheduler.schema import empty
from scheduler.schema.handles import (
    Flags2,
    Floats1,
    Handle,
    Ints1,
    Ints2,
    Ints3,
    Shorts2,
    Singles1,
)
from scheduler.state import checks
from tests import make
from tests.unit.compiled import needs_jit


class Inner(Handle):
    values: Ints1
    at: int


class Outer(Handle):
    flags: Flags2
    cube: Ints3
    inner: Inner
    yes: bool
    floats: Floats1
    shorts: Shorts2
    singles: Singles1


def fill_outer(rng: np.random.Generator, shape: tuple[int, int, int]) -> Outer:
    a, b, d = shape
    return Outer(
        flags=rng.random((a, b)) < 0.5,
        cube=rng.integers(-99, 99, shape),
        inner=Inner(rng.integers(0, 9, d), int(rng.integers(-(2**62), 2**62))),
        yes=bool(rng.random() < 0.5),
        floats=rng.random(b),
        shorts=rng.integers(-9, 9, (b, d)).astype(np.int16),
        singles=rng.integers(-9, 9, a).astype(np.float32),
    )


@_jit.part
def _sum_inner(inner: Inner, factor: int) -> int:
    total = inner.at
    for i in range(inner.values.size):
        total += factor * inner.values[i]
    return int(total)


@_jit.kernel
def _read_all(outer: Outer, out: Floats1) -> int:
    """Sums of all arrays, weighted by place, into ``out`` [6]; the shapes too."""
    for i in range(outer.flags.shape[0]):
        for j in range(outer.flags.shape[1]):
            out[0] += (i + 7 * j + 1) * outer.flags[i, j]
            for k in range(outer.cube.shape[2]):
                out[1] += (i + 7 * j + 49 * k + 1) * outer.cube[i, j, k]
    for j in range(outer.floats.size):
        out[2] += (j + 1) * outer.floats[j]
        for k in range(outer.shorts.shape[1]):
            out[3] += (j + 7 * k + 1) * outer.shorts[j, k]
    for i in range(outer.singles.size):
        out[4] += (i + 1) * outer.singles[i]
    out[5] = 1.0 if outer.yes else 0.0
    return _sum_inner(outer.inner, 3)


def check(outer: Outer) -> None:
    compiled, plain = np.zeros(6), np.zeros(6)
    found = _read_all(outer, compiled)
    function: Any = getattr(_read_all, "py_func", _read_all)
    assert function(outer, plain) == found
    np.testing.assert_array_equal(compiled, plain)


sizes = st.tuples(*[st.integers(0, 5)] * 3)


@given(sizes, sizes, st.integers(0, 2**32 - 1))
def test_a_kernel_reads_what_is_in_the_fields_then_and_later(
    before: tuple[int, int, int], after: tuple[int, int, int], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    outer = fill_outer(rng, before)
    check(outer)
    other = fill_outer(rng, after)
    for name in Outer.fields:
        setattr(outer, name, getattr(other, name))
    check(outer)
    outer.inner.at, outer.inner.values = 5, np.arange(3)
    outer.cube[...] = 1
    check(outer)
    check(outer.replace(yes=not outer.yes))


def test_a_copy_with_changes_leaves_the_first_as_it_was() -> None:
    first = Inner(np.arange(3), 1)
    second = first.replace(at=2)
    assert (first.at, second.at) == (1, 2)
    assert first.values is second.values


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("floats", np.zeros(2, np.int64), "int64"),
        ("floats", np.zeros((2, 1)), "2 dimensions"),
        ("floats", np.zeros(4)[::2], "not contiguous"),
        ("cube", np.zeros((2, 2, 2), np.int64).T, "not contiguous"),
        ("floats", np.float64(1.0), "float64"),
        ("cube", np.int64(1), "int64"),
        ("inner", None, "NoneType"),
        ("yes", None, "None"),
        ("yes", 1.5, "float"),
    ],
)
def test_what_a_kernel_would_read_wrongly_is_refused(name: str, value: Any, told: str) -> None:
    outer = fill_outer(np.random.default_rng(1), (1, 2, 3))
    before = getattr(outer, name)
    with pytest.raises(TypeError, match=told):
        setattr(outer, name, value)
    assert getattr(outer, name) is before
    check(outer)


def test_a_number_is_no_array_in_a_new_handle_either() -> None:
    """Its one word would put all fields behind it out of place."""
    number: Any = np.int64(1)
    with pytest.raises(TypeError, match="int64"):
        Inner(number, 1)


def test_an_array_that_may_not_be_written_to_is_refused() -> None:
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    outer = fill_outer(np.random.default_rng(1), (1, 2, 3))
    with pytest.raises(TypeError, match="not writable"):
        outer.floats = frozen


def test_a_handle_has_all_its_fields_or_is_none() -> None:
    with pytest.raises(TypeError, match=r"missing: \['at'\]"):
        Inner(np.zeros(1, np.int64))  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Inner(np.zeros(1, np.int64), 1, extra=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Inner(np.zeros(1, np.int64), 1, 2)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Inner(np.zeros(1, np.int64), 1).other = 2


@given(arrays.arrays(np.int64, arrays.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=4)))
def test_any_array_of_the_declared_kind_is_taken(values: Any) -> None:
    class Table(Handle):
        rows: Ints2

    assert Table(values).rows is values


@needs_jit
def test_every_kernel_is_compiled_for_the_one_signature_that_it_declares() -> None:
    compiling.compile_kernels(lambda _: None)
    kernels = compiling.list_kernels()
    assert len(kernels) > 25
    for name, one in kernels.items():
        compiling._compile(one)
        assert len(one.signatures) == 1, name


@needs_jit
def test_a_type_of_handles_is_the_same_in_every_call() -> None:
    one, other = Inner(np.zeros(1, np.int64), 1), Inner(np.zeros(2, np.int64), 2)
    types = {_handles.type_argument(Inner), *(type(value)._numba_type_ for value in (one, other))}  # type: ignore[attr-defined]
    assert len(types) == 1


def test_a_handle_that_adopts_another_is_found_by_kernels_where_it_was() -> None:
    cluster = make.cluster(nodes=[make.node(name="n0", cpu="1")])
    tables = cluster.ledger.tables
    columns, n_rows = tables.nodes, cluster.nodes.capacity
    for i in range(1, n_rows + 2):
        cluster.see_node(make.node(name=f"n{i}", cpu="1"))
    assert cluster.nodes.capacity > n_rows
    assert cluster.ledger.tables is tables
    assert tables.nodes is columns is cluster.nodes.columns
    # A kernel charges a pod to a row that was not there when the handle was made.
    pod = cluster.see_pod(make.pod(name="p", cpu="1", node=f"n{n_rows + 1}"))
    assert pod is not None
    row = cluster.nodes.find_row(f"n{n_rows + 1}")
    assert row >= n_rows
    assert columns.requested[c.CPU, row] == 1000
    checks.verify(cluster)


def test_a_sealed_handle_keeps_its_values() -> None:
    one = Inner(np.zeros(1, np.int64), 1).seal()
    with pytest.raises(AttributeError, match=r"Inner\.at is sealed"):
        one.at = 2
    assert one.at == 1
    assert one.replace(at=2).at == 2


def test_what_all_pods_without_claims_share_is_sealed() -> None:
    with pytest.raises(AttributeError, match="sealed"):
        empty.make_claim_ask().most = 5
