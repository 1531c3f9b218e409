"""Handles: bundles of arrays that kernels take as one pointer.

Python reads a field of a handle as an attribute. A kernel gets the address of the handle's table of 64-bit words and
reads from there: of an array the address of its data and then its shape, of a number its value, of another handle the
address of its table. So a call hands over as many words as it has arguments, however many arrays there are, and an
array is looked at once, when it is put into a handle.

numba's own ``structref`` does nearly the same. But its constructor is compiled anew in each process, its fields are
reference-counted wherever a kernel reads them, and LLVM may not move such a read out of a loop.
"""

from __future__ import annotations

import inspect
import weakref
from array import array
from ctypes import addressof, c_char
from typing import (
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    Self,
    TypeVar,
    dataclass_transform,
)

import numpy as np
from numpy.typing import NDArray

# Arrays by what is in them; with a number they are fields of handles, of so many dimensions.
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints1 = Annotated[Ints, np.int64, 1]
Ints2 = Annotated[Ints, np.int64, 2]
Ints3 = Annotated[Ints, np.int64, 3]
Flags1 = Annotated[Flags, np.bool_, 1]
Flags2 = Annotated[Flags, np.bool_, 2]
Floats1 = Annotated[Floats, np.float64, 1]
Floats2 = Annotated[Floats, np.float64, 2]
# Handles of one class: kernels take their addresses, and turn an address into a handle (``kernels/_handles.py``).
Handles = Annotated[tuple[Any, ...], np.int64, 1]
# Numbers of rows and of interned values, of which a large cluster has very many.
Numbers1 = Annotated[NDArray[np.int32], np.int32, 1]
Numbers2 = Annotated[NDArray[np.int32], np.int32, 2]
# What is read of every node for every pod is kept small; and of a card's score only as exact as the driver's.
Shorts2 = Annotated[NDArray[np.int16], np.int16, 2]
Singles1 = Annotated[NDArray[np.float32], np.float32, 1]


class ArrayKind(NamedTuple):
    """What an array is to kernels."""

    dtype: np.dtype[Any]
    dimensions: int


class Field(NamedTuple):
    """A field of a handle.

    Attributes:
        at: its first word.
        kind: ``int``, ``bool`` or the class of a handle; of an array the type of what is in it.
        array: of an array, its kind; kinds that are equal are one object.
    """

    at: int
    kind: Any
    array: ArrayKind | None

    @property
    def n_words(self) -> int:
        """How many words the field takes."""
        return 1 if self.array is None else 1 + self.array.dimensions


def read_declared(declared: Any) -> tuple[Any, ArrayKind | None]:
    """Return the declared kind and, of an array, the kind of array, as in ``Field``."""
    if not hasattr(declared, "__metadata__"):
        return declared, None
    kind, dimensions = declared.__metadata__
    return kind, _intern_kind(ArrayKind(np.dtype(kind), dimensions))


def _intern_kind(kind: ArrayKind) -> ArrayKind:
    return _kinds.setdefault(kind, kind)


_kinds: dict[ArrayKind, ArrayKind] = {}
_ADDRESSES = ArrayKind(np.dtype(np.int64), 1)
_NUMBERS = (int, bool)


@dataclass_transform()
class Handle:
    """A bundle; its subclasses declare its fields as classes declare attributes, and nothing else.

    Raises:
        TypeError: a field is given a value of another type, an array of another type, number of dimensions or layout,
            or one that may not be written to; or a field is missing.
    """

    fields: ClassVar[dict[str, Field]] = {}
    _words: array[int]
    _address: int
    _is_sealed: ClassVar[bool] = False

    def __init__(self, *values: Any, **named: Any) -> None:
        fields = self.fields
        if values:
            named |= dict(zip(fields, values, strict=False))
        if named.keys() != fields.keys() or len(values) > len(fields):
            missing = [name for name in fields if name not in named]
            raise TypeError(f"{type(self).__name__} has other fields; missing: {missing}")
        words = array("q")
        for name, (_, kind, kind_of_array) in fields.items():
            value = named[name]
            if kind_of_array is None:
                if type(value) is kind:
                    words.append(getattr(value, "_address", value))
                else:
                    words.extend(self._read_words(name, value))
                continue
            known = _known.get(id(value))
            if known is not None and known[0] is kind_of_array:
                words.extend(known[1])
            elif (found := _read_array(kind_of_array, value)) is not None:
                words.extend(found)
            else:
                words.extend(self._read_words(name, value))
        self.__dict__.update(named, _words=words, _address=words.buffer_info()[0])

    def __setattr__(self, name: str, value: Any) -> None:
        """Put another value into a field; kernels find it from the next call on."""
        if name not in self.fields:
            raise AttributeError(f"{type(self).__name__} has no field {name}")
        if self._is_sealed:
            raise AttributeError(
                f"{type(self).__name__}.{name} is sealed: others hold the same handle"
            )
        if value is not self.__dict__[name]:
            at, words = self.fields[name].at, self._read_words(name, value)
            self._words[at : at + len(words)] = array("q", words)
            self.__dict__[name] = value

    def _read_words(self, name: str, value: Any) -> tuple[int, ...]:
        """Return the words of a field with a value."""
        field = self.fields[name]
        if field.array is not None:
            if isinstance(value, tuple):
                if not value:
                    return _NO_WORDS
                if all(isinstance(one, Handle) for one in value):
                    return self._list_addresses(name, value)
            words = _read_array(field.array, value)
            if words is not None:
                return words
        elif isinstance(value, Handle):
            if isinstance(value, field.kind):
                return (value._address,)  # noqa: SLF001 - of a handle as well
        elif field.kind in _NUMBERS and isinstance(value, int | np.integer | np.bool_):
            return (int(value),)
        raise TypeError(f"{type(self).__name__}.{name}: {_describe(value)}, not {field.kind}")

    def _list_addresses(self, name: str, handles: tuple[Handle, ...]) -> tuple[int, ...]:
        """Return the words of a field with handles; their addresses stay as long as this handle does."""
        addresses = np.array([one._address for one in handles], np.int64)  # noqa: SLF001 - likewise
        self.__dict__.setdefault("_lists", {})[name] = addresses
        return _read_array(_ADDRESSES, addresses) or ()

    def __init_subclass__(cls) -> None:
        cls.fields, at = {}, 0
        for name, hint in inspect.get_annotations(cls, eval_str=True).items():
            cls.fields[name] = Field(at, *read_declared(hint))
            at += cls.fields[name].n_words

    def list_values(self) -> list[Any]:
        """List the values of all fields, in their order."""
        return [getattr(self, name) for name in self.fields]

    def seal(self) -> Self:
        """Refuse other values for its fields from now on, because very many handles hold this one; return it."""
        self.__dict__["_is_sealed"] = True
        return self

    def adopt(self, other: Self) -> None:
        """Take all values of another handle: who holds this handle finds tables there that have grown."""
        for name in self.fields:
            setattr(self, name, getattr(other, name))

    def replace(self, **changes: Any) -> Self:
        """Return another handle with these changes and the same values in all other fields."""
        return type(self)(**{name: getattr(self, name) for name in self.fields} | changes)


def share_array(values: A) -> A:
    """Register an array that very many handles hold: it is read once, and stays where it is."""
    kind, key = _intern_kind(ArrayKind(values.dtype, values.ndim)), id(values)
    words = _read_array(kind, values)
    if words is not None:
        # Another array may have the number when this one is gone.
        _known[key] = kind, words, weakref.ref(values, lambda _: _known.pop(key, None))
    return values


A = TypeVar("A", bound=NDArray[Any])
# By the identity of an array: its kind and words; the reference is kept with them.
_known: dict[int, tuple[ArrayKind, tuple[int, ...], Any]] = {}


def _read_array(kind: ArrayKind, values: Any) -> tuple[int, ...] | None:
    """Return the address of the data and the shape; None if it is no such array, or not one that kernels take."""
    if not isinstance(values, np.ndarray) or values.dtype != kind.dtype:
        return None
    shape, flags = values.shape, values.flags
    if len(shape) != kind.dimensions or not (flags.c_contiguous and flags.writeable):
        return None
    # Of nothing there is no address, and it is not read.
    buffer: Any = values
    return (addressof(c_char.from_buffer(buffer)) if values.size else 0, *shape)


# The words of a field with no handles. The array stays, as its address does.
_NO_HANDLES = np.zeros(0, np.int64)
_NO_WORDS = _read_array(_ADDRESSES, _NO_HANDLES) or ()


def _describe(value: Any) -> str:
    """Describe a value that a kernel does not take."""
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    flags = value.flags
    how = "" if flags.c_contiguous and flags.writeable else ", not contiguous or not writable"
    return f"{value.ndim} dimensions of {value.dtype}{how}"
