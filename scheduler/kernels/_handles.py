"""What handles are to numba: a pointer to a table of words, of which kernels read fields and which they never write.

The classes of ``schema`` say which word is what. Written with numba's extension API, as its ``structref`` is.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np import arrayobj, numpy_support

from scheduler.schema.columns import Ask
from scheduler.schema.handles import ArrayKind, Handle, read_declared

_WORD, _POINTER = ir.IntType(64), ir.IntType(8).as_pointer()


class HandleType(types.Type):  # type: ignore[misc]  # numba's classes have no types
    """The type of the handles of one class."""

    def __init__(self, handle: type[Handle]) -> None:
        self.handle = handle
        super().__init__(name=f"{handle.__module__}.{handle.__qualname__}")


def type_argument(declared: Any) -> types.Type:
    """What a kernel is given for an argument by how it is declared."""
    return type_field(*read_declared(declared))


def type_field(kind: Any, array: ArrayKind | None) -> types.Type:
    """What a kernel reads of a field, by its figures in ``handles.Field``."""
    if array is not None:
        return types.Array(numpy_support.from_dtype(array.dtype), array.dimensions, "C")
    return _NUMBERS.get(kind) or _type_handle(kind)


_NUMBERS = {int: types.int64, bool: types.boolean}


def _type_handle(handle: type[Handle]) -> HandleType:
    """The type of a class of handles; from the first time on the class has it where numba looks first."""
    found = handle.__dict__.get("_numba_type_")
    if found is None:
        found = HandleType(handle)
        handle._numba_type_ = found  # type: ignore[attr-defined]  # numba's name
    return found


@typeof_impl.register(Handle)  # type: ignore[untyped-decorator]
def _type_value(value: Handle, _: Any) -> HandleType:
    return _type_handle(type(value))


@register_model(HandleType)
class _Model(models.PrimitiveModel):  # type: ignore[misc]  # as above
    def __init__(self, manager: Any, handle: HandleType) -> None:
        super().__init__(manager, handle, _POINTER)


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]  # as above
    key = HandleType

    def generic_resolve(self, handle: HandleType, name: str) -> types.Type | None:
        field = handle.handle.fields.get(name)
        return None if field is None else type_field(field.kind, field.array)


@unbox(HandleType)  # type: ignore[untyped-decorator]
def _unbox(_: HandleType, value: Any, c: Any) -> NativeValue:
    address = c.pyapi.object_getattr_string(value, "_address")
    word = c.pyapi.long_as_longlong(address)
    c.pyapi.decref(address)
    failed = cgutils.is_not_null(c.builder, c.pyapi.err_occurred())
    return NativeValue(c.builder.inttoptr(word, _POINTER), is_error=failed)


@lower_getattr_generic(HandleType)  # type: ignore[untyped-decorator]
def _read_field(context: Any, builder: Any, handle: HandleType, pointer: Any, name: str) -> Any:
    field = handle.handle.fields[name]
    words = [_load(builder, pointer, field.at + i) for i in range(field.n_words)]
    if field.array is not None:
        return _make_array(context, builder, type_field(field.kind, field.array), words)
    if field.kind is bool:
        return builder.trunc(words[0], ir.IntType(1))
    return words[0] if field.kind is int else builder.inttoptr(words[0], _POINTER)


@intrinsic  # type: ignore[untyped-decorator]
def read_ask(_typing: Any, _address: types.Type) -> tuple[Any, Any]:
    """Return the ask of an address, as ``Ask.more`` has them."""
    ask = _type_handle(Ask)

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], _POINTER)

    return ask(types.int64), generate


def _load(builder: Any, pointer: Any, at: int) -> Any:
    """A word of a table. Kernels write none, so LLVM may take the word from where it was read last."""
    words = builder.bitcast(pointer, _WORD.as_pointer())
    word = builder.load(builder.gep(words, [ir.Constant(_WORD, at)]))
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word


def _make_array(context: Any, builder: Any, array: types.Array, words: list[Any]) -> Any:
    """A contiguous array, of the address of its data and of its shape."""
    item = context.get_data_type(array.dtype)
    size = ir.Constant(_WORD, context.get_abi_sizeof(item))
    strides = [size]
    for length in reversed(words[2:]):
        strides.insert(0, builder.mul(strides[0], length))
    made = arrayobj.make_array(array)(context, builder)
    data = builder.inttoptr(words[0], item.as_pointer())
    arrayobj.populate_array(made, data, words[1:], strides, size, meminfo=None)
    return made._getvalue()  # noqa: SLF001 - numba's own way
