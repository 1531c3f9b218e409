"""Functions: what each is given, what it returns, what it does and what it costs.

A library is a table of overloads, written as ``name(what, what): what``; a member's first is what it is called on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import Any, NamedTuple

from scheduler.devices.cel.errors import CelError
from scheduler.devices.cel.kinds import Kind, read_kind
from scheduler.devices.cel.running import Run
from scheduler.devices.cel.values import MAPS, find_class, measure, name_type

Work = Callable[..., Any]
Cost = Callable[..., int]
Find = Callable[[tuple[Any, ...]], Work]


class Overload(NamedTuple):
    """One way to call a function."""

    wanted: tuple[Kind, ...]
    result: Kind
    work: Work


class Library(NamedTuple):
    """Functions that belong together.

    Attributes:
        functions: what each overload does; ``None`` for those that the compiler does itself.
        members: the same of those that are called on something.
        costs: what a function costs, given its arguments, where it is not 1.
        sure_costs: the same for functions that cost as much only if the static types leave one overload.
        otherwise: what a function does with arguments that no overload is for, where it is not the usual error.
    """

    functions: Mapping[str, Work | None] = {}
    members: Mapping[str, Work | None] = {}
    costs: Mapping[str, Cost] = {}
    sure_costs: Mapping[str, Cost] = {}
    otherwise: Mapping[str, Work] = {}


class Function:
    """All overloads of a name that take as many arguments."""

    __slots__ = ("_exact", "_loose", "cost", "name", "otherwise", "overloads", "sure_cost")

    def __init__(self, name: str) -> None:
        self.name = name
        self.overloads: list[Overload] = []
        self._exact: dict[tuple[type, ...], Work] = {}
        self._loose: list[Overload] = []
        self.cost: Cost | None = None
        self.sure_cost: Cost | None = None
        self.otherwise: Work | None = None

    def add(self, overload: Overload) -> None:
        """Add a way to call it."""
        self.overloads.append(overload)
        classes = _find_classes(overload)
        if None in classes:
            self._loose.append(overload)
        else:
            self._exact.setdefault(classes, overload.work)  # type: ignore[arg-type]

    @property
    def is_single(self) -> bool:
        """Whether one piece of upstream's code does it for all types."""
        return self.otherwise is not None

    def find(self, args: tuple[Any, ...]) -> Work:
        """Return what is to be done with arguments.

        Raises:
            CelError: no overload is for them.
        """
        work = self._exact.get(tuple(map(type, args)))
        if work is not None:
            return work
        for overload in self._loose:
            if all(map(_fits, overload.wanted, args)):
                return overload.work
        if self.otherwise is not None:
            return self.otherwise
        raise self._refuse(args)

    def choose(self, overload: Overload | None) -> Find:
        """Return what finds the work, of one overload only if the static types leave that one."""
        if overload is None or self.is_single:
            return self.find
        wanted, work = overload.wanted, overload.work
        classes = _find_classes(overload)

        def find_only(args: tuple[Any, ...]) -> Work:
            if tuple(map(type, args)) == classes or all(map(_fits, wanted, args)):
                return work
            raise self._refuse(args)

        return find_only

    def _refuse(self, args: tuple[Any, ...]) -> CelError:
        return CelError(f"no such overload: {self.name}({', '.join(map(name_type, args))})")


def _find_classes(overload: Overload) -> tuple[type | None, ...]:
    """Return the classes of what an overload takes; none for what a class does not say all about."""
    return tuple(None if kind.parts else find_class(kind.name) for kind in overload.wanted)


def _fits(kind: Kind, value: Any) -> bool:
    """Say whether a value has a type; of lists and maps the first element is looked at, as cel-go does."""
    if kind.name[0] == "_" or kind.name == "dyn":
        return True
    cls = type(value)
    if kind.name == "list":
        return cls is list and (not value or _fits(kind.parts[0], value[0]))
    if kind.name == "map":
        return cls in MAPS
    return cls is find_class(kind.name)


Functions = dict[tuple[str, bool], dict[int, Function]]


def collect(*libraries: Library) -> Functions:
    """Put the functions of libraries together: by name and whether they are members, then by how many they take."""
    found: Functions = {}
    for library in libraries:
        for is_member, table in ((False, library.functions), (True, library.members)):
            for text, work in table.items():
                name, overload = _read(text, work or _never)
                by_count = found.setdefault((name, is_member), {})
                count = len(overload.wanted)
                function = by_count.setdefault(count, Function(name))
                function.add(overload)
                function.cost = library.costs.get(name, function.cost)
                function.sure_cost = library.sure_costs.get(name, function.sure_cost)
                function.otherwise = library.otherwise.get(name, function.otherwise)
    return found


def _read(text: str, work: Work) -> tuple[str, Overload]:
    name, _, rest = text.partition("(")
    wanted, _, result = rest.rpartition("): ")
    kinds = read_kind(f"list({wanted})").parts if wanted else ()
    return name, Overload(kinds, read_kind(result), work)


def _never(run: Run, *_args: Any) -> Any:
    raise AssertionError(run)


def by_length(factor: float = 0.1) -> Cost:
    """Return the cost of going through the first argument."""
    return lambda value, *_: ceil(measure(value) * factor)


def traverse(value: Any) -> int:
    """Return the cost of going through a value and all that is in it."""
    cls = type(value)
    if cls in {str, bytes}:
        # Here, and only here, the bytes of a text are counted.
        return int(len(value.encode() if cls is str else value) * 0.1)
    if cls is list:
        return sum(map(traverse, value))
    if cls in MAPS:
        return sum(traverse(key) + traverse(item) for key, item in value.items())
    return 1


def cost_traversal(value: Any, *_rest: Any) -> int:
    """Return the cost of going through the first argument and all that is in it."""
    return traverse(value)
