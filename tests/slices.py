"""How much the tests try that try very many examples: a fixed slice by ``make test``, the whole by ``make soak``."""

import os
from collections.abc import Sequence
from copy import copy
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

T = TypeVar("T")

IS_SOAK = os.environ.get("EVENKEEL_SOAK", "") != ""
IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
# One in how many is tried, but of examples no fewer than so many.
_PART, _LEAST = 5, 5
# Where Python runs the kernels they take a hundred times as long.
_SLOWER = 10


def count_examples(n: int) -> int:
    """Return how many examples to try of ``n``, the whole."""
    return max(-(-n // _one_in()), min(n, _LEAST))


def pick_part(cases: Sequence[T]) -> Sequence[T]:
    """Return the seeds or other cases to try: all, or one in so many."""
    return cases[:: _one_in()]


# For a test of many seeds that has one case: its figure is a mean, of which a slice would say nothing.
needs_whole = pytest.mark.skipif(not IS_SOAK, reason="a mean of many runs, by `make soak`")


def scale_bound(n: int) -> int:
    """Return how often at least something is to be met in a slice, where it is ``n`` times in the whole."""
    return n // _one_in()


def _one_in() -> int:
    return (1 if IS_SOAK else _PART) * (1 if IS_COMPILED else _SLOWER)


def load_profile() -> None:
    """Tell hypothesis how much to try where a test says nothing.

    The slice has the same examples each time: what fails is a change's doing. No test asserts times, for the first
    example may load kernels, and a busy machine may take any time.
    """
    whole: int = settings().max_examples
    settings.register_profile(
        "ours", deadline=None, max_examples=count_examples(whole), derandomize=not IS_SOAK
    )
    settings.load_profile("ours")
    if not IS_SOAK:
        _try_no_constants_of_loaded_modules()


def _try_no_constants_of_loaded_modules() -> None:
    """Keep hypothesis from trying numbers and texts that stand in the modules loaded so far.

    Which modules these are depends on the tests that ran before in the same process, so the examples would not be the
    same each time. Hypothesis has no setting for it. ``make soak`` tries such constants.
    """
    provider = providers.HypothesisProvider
    assert hasattr(provider, "_local_constants"), "hypothesis names its constants otherwise"
    # Nothing is in this set before hypothesis looks at modules for the first time.
    provider._local_constants = copy(providers._local_constants)  # type: ignore[method-assign, assignment]
