"""A compiled kernel as Python calls it: without numba's look at the type of every array that is handed over.

That look takes 0.1 to 0.3 µs an array, and a decision hands over 130 of them. Most are in the same bundle as
the last time, and bundles do not change: what was looked at once is known. Only what is new is looked at, and
where a type is another one than before, the call goes through numba, because what is compiled for one type reads
beyond the end of the array of another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.np import numpy_support


class Direct:
    """Called like the kernel, with the same results; to other kernels it is the kernel.

    Attributes:
        dispatcher: numba's own, which finds the code by the types of all arguments, or compiles it.
    """

    def __init__(self, dispatcher: Any) -> None:
        self.dispatcher = dispatcher
        # What numba asks of a name that a kernel uses.
        self._numba_type_ = dispatcher._numba_type_
        self.__doc__, self.__name__ = dispatcher.__doc__, dispatcher.__name__
        # A look for each argument, and the code for the types that they look for; None before the first call.
        self._known: tuple[list[_Look], Any] | None = None

    @property
    def signatures(self) -> list[Any]:
        """The types that it is compiled for."""
        signatures: list[Any] = self.dispatcher.signatures
        return signatures

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the kernel."""
        known = self._known
        if known is None and not kwargs:
            return self._first(args)
        if known is None or kwargs or len(args) != len(known[0]):
            return self.dispatcher(*args, **kwargs)
        for look, arg in zip(known[0], args):  # noqa: B905 - they are as many
            if arg is not look.last and not look.fits(arg):
                return self.dispatcher(*args)
        return known[1](*args)

    def _first(self, args: tuple[Any, ...]) -> Any:
        """Call the kernel through numba; what it compiles, or finds in its cache, is called from now on."""
        result = self.dispatcher(*args)
        given = tuple(map(numba.typeof, args))
        compiled = self.dispatcher.overloads.get(given)
        code = self.dispatcher if compiled is None else compiled.entry_point
        self._known = [_look_at(one) for one in given], code
        return result


class _Look(ABC):
    """Looks whether a value is of the type that was compiled for, and remembers the last one that was."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last: Any = self

    @abstractmethod
    def fits(self, value: Any) -> bool:
        """Whether the value is of the type; if so, it is remembered."""


class _Bundle(_Look):
    __slots__ = ("_class", "_looks")

    def __init__(self, bundle: types.NamedTuple | types.NamedUniTuple) -> None:
        super().__init__()
        self._class, self._looks = bundle.instance_class, [_look_at(item) for item in bundle]

    def fits(self, value: Any) -> bool:
        if type(value) is not self._class:
            return False
        for look, item in zip(self._looks, value):  # noqa: B905 - the class says how many
            if item is not look.last and not look.fits(item):
                return False
        self.last = value
        return True


class _Array(_Look):
    __slots__ = ("_dtype", "_ndim")

    def __init__(self, array: types.Array) -> None:
        super().__init__()
        self._dtype, self._ndim = numpy_support.as_dtype(array.dtype), array.ndim

    def fits(self, value: Any) -> bool:
        if type(value) is not np.ndarray or value.ndim != self._ndim or value.dtype != self._dtype:
            return False
        # Contiguous, aligned and writable: as all of ours are.
        if not value.flags.carray:
            return False
        self.last = value
        return True


class _Number(_Look):
    __slots__ = ("_classes",)

    def __init__(self, *classes: type) -> None:
        super().__init__()
        self._classes = classes

    def fits(self, value: Any) -> bool:
        return type(value) in self._classes


_NUMBERS: dict[types.Type, tuple[type, ...]] = {
    types.int64: (int, np.int64),
    types.float64: (float, np.float64),
    types.boolean: (bool, np.bool_),
}


def _look_at(given: types.Type) -> _Look:
    if isinstance(given, types.NamedTuple | types.NamedUniTuple):
        return _Bundle(given)
    if isinstance(given, types.Array) and given.layout == "C" and given.mutable and given.aligned:
        return _Array(given)
    # Nothing fits where the type is any other: such calls go through numba.
    return _Number(*_NUMBERS.get(given, ()))
