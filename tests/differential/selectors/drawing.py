"""Random expressions about a device.

Each is built by types, so most of them compile; now and then a part has another type than its place wants.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.differential.selectors.leaves import LEAVES, PATTERNS, TYPES

_NAMES = ("x", "y", "z")


class Drawer:
    """Draws expressions, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._variables: list[tuple[str, str]] = []

    def draw(self, wanted: str = "bool", depth: int = 4) -> str:
        """Draw an expression of a type; what it is made of gets simpler with each level."""
        if self._random.random() < 0.03:
            wanted = self._random.choice(TYPES)
        named = [
            name for name, kind in self._variables if kind == wanted or self._random.random() < 0.05
        ]
        if named and self._random.random() < 0.35:
            return self._random.choice(named)
        if depth <= 0 or self._random.random() < 0.15:
            return self._draw_leaf(wanted)
        return self._pick(getattr(self, f"_{wanted}s")())(depth - 1)

    def _pick(self, ways: list[Callable[[int], str]]) -> Callable[[int], str]:
        return self._random.choice(ways)

    def _draw_leaf(self, wanted: str) -> str:
        return self._random.choice(LEAVES[wanted]) if wanted in LEAVES else self._draw_attribute()

    def _draw_attribute(self) -> str:
        choose = self._random.choice
        domain, name = (
            choose(["d.io", "d.io", "x.io", "q"]),
            choose([*"sinbvwt", "ss", "ii", "bb", "vv", "zz"]),
        )
        return choose(
            [
                f"device.attributes['{domain}'].{name}",
                f"device.attributes['{domain}']['{name}']",
                f"device.attributes['{domain}'].?{name}",
                f"device.attributes[?'{domain}'].{name}",
                f"device.attributes[device.driver].{name}",
            ]
        )

    def _bools(self) -> list[Callable[[int], str]]:
        draw, choose = self.draw, self._random.choice

        def compare(d: int) -> str:
            kind = choose(["int", "uint", "double", "string", "bytes", "bool", "dyn"])
            other = (
                choose(["int", "uint", "double", "dyn"]) if self._random.random() < 0.2 else kind
            )
            return f"({draw(kind, d)} {choose(['<', '<=', '>', '>='])} {draw(other, d)})"

        def equal(d: int) -> str:
            kind = choose(TYPES)
            other = "dyn" if self._random.random() < 0.3 else kind
            return f"({draw(kind, d)} {choose(['==', '!='])} {draw(other, d)})"

        def quantify(d: int) -> str:
            over = choose(["list", "map", "dyn"])
            macro = choose(["all", "exists", "exists_one", "existsOne"])
            count = choose([1, 1, 2])
            return self._loop(
                over, macro, count, [choose(["int", "string", "dyn"]), "dyn"], "bool", d
            )

        return [
            lambda d: f"({draw('bool', d)} {choose(['&&', '||'])} {draw('bool', d)})",
            lambda d: f"({draw('bool', d)} {choose(['&&', '||'])} {draw('dyn', d)})",
            lambda d: f"!{draw('bool', d)}",
            compare,
            compare,
            equal,
            equal,
            quantify,
            quantify,
            lambda d: self._choice("bool", d),
            lambda d: f"has({self._field(d)})",
            lambda d: (
                f"({draw(choose(['int', 'string', 'dyn']), d)} in {draw(choose(['list', 'map', 'dyn']), d)})"
            ),
            lambda d: (
                f"{draw('string', d)}.{choose(['startsWith', 'endsWith', 'contains'])}({draw('string', d)})"
            ),
            lambda d: f"{draw('string', d)}.matches('{choose(PATTERNS)}')",
            lambda d: f"{draw('optional', d)}.hasValue()",
            lambda d: (
                f"{draw('semver', d)}.{choose(['isLessThan', 'isGreaterThan'])}({draw('semver', d)})"
            ),
            lambda d: (
                f"{draw('quantity', d)}.{choose(['isLessThan', 'isGreaterThan'])}({draw('quantity', d)})"
            ),
            lambda d: f"{draw('quantity', d)}.isInteger()",
            lambda d: (
                f"{choose(['isQuantity', 'isSemver', 'isIP', 'isCIDR', 'isURL'])}({draw('string', d)})"
            ),
            lambda d: (
                f"{draw(choose(['list', 'dyn']), d)}.includes({draw(choose(['int', 'string', 'dyn']), d)})"
            ),
            lambda d: (
                f"sets.{choose(['contains', 'intersects', 'equivalent'])}({draw('list', d)}, {draw('list', d)})"
            ),
            lambda d: f"{draw('list', d)}.isSorted()",
            lambda d: self._bind("bool", d),
            lambda d: f"bool({draw(choose(['bool', 'string', 'dyn']), d)})",
            lambda d: f"({draw('bool', d)})",
        ]

    def _ints(self) -> list[Callable[[int], str]]:
        draw, choose = self.draw, self._random.choice
        return [
            lambda d: f"({draw('int', d)} {choose('+-*/%')} {draw('int', d)})",
            lambda d: f"-({draw('int', d)})",
            lambda d: f"size({draw(choose(['string', 'list', 'map', 'bytes', 'dyn']), d)})",
            lambda d: f"{draw(choose(['string', 'list', 'map', 'dyn']), d)}.size()",
            lambda d: f"int({draw(choose(['int', 'uint', 'double', 'string', 'dyn']), d)})",
            lambda d: (
                f"{draw('string', d)}.{choose(['indexOf', 'lastIndexOf'])}({draw('string', d)})"
            ),
            lambda d: (
                f"{draw('string', d)}.{choose(['indexOf', 'lastIndexOf'])}({draw('string', d)}, {draw('int', d)})"
            ),
            lambda d: (
                f"{draw(choose(['list', 'dyn']), d)}.{choose(['indexOf', 'lastIndexOf'])}({draw('dyn', d)})"
            ),
            lambda d: f"{draw(choose(['list', 'dyn']), d)}.{choose(['sum', 'min', 'max'])}()",
            lambda d: f"{draw('semver', d)}.{choose(['major', 'minor', 'patch'])}()",
            lambda d: f"{draw('semver', d)}.compareTo({draw('semver', d)})",
            lambda d: f"{draw('quantity', d)}.compareTo({draw('quantity', d)})",
            lambda d: f"{draw('quantity', d)}.asInteger()",
            lambda d: f"sign({draw('quantity', d)})",
            lambda d: self._choice("int", d),
            lambda d: self._bind("int", d),
        ]

    def _uints(self) -> list[Callable[[int], str]]:
        draw, choose = self.draw, self._random.choice
        return [
            lambda d: f"({draw('uint', d)} {choose('+-*/%')} {draw('uint', d)})",
            lambda d: f"uint({draw(choose(['int', 'uint', 'double', 'string']), d)})",
        ]

    def _doubles(self) -> list[Callable[[int], str]]:
        draw, choose = self.draw, self._random.choice
        return [
            lambda d: f"({draw('double', d)} {choose('+-*/')} {draw('double', d)})",
            lambda d: f"double({draw(choose(['int', 'uint', 'double', 'string', 'dyn']), d)})",
            lambda d: f"{draw('quantity', d)}.asApproximateFloat()",
            lambda d: f"-({draw('double', d)})",
        ]

    def _strings(self) -> list[Callable[[int], str]]:
        draw, choose = self.draw, self._random.choice
        return [
            lambda d: f"({draw('string', d)} + {draw('string', d)})",
            lambda d: f"{draw('string', d)}.{choose(['lowerAscii', 'upperAscii', 'trim'])}()",
            lambda d: f"{draw('string', d)}.substring({draw('int', d)})",
            lambda d: f"{draw('string', d)}.substring({draw('int', d)}, {draw('int', d)})",
            lambda d: f"{draw('string', d)}.charAt({draw('int', d)})",
            lambda d: f"{draw('string', d)}.replace({draw('string', d)}, {draw('string', d)})",
            lambda d: (
                f"{draw('string', d)}.replace({draw('string', d)}, {draw('string', d)}, {draw('int', d)})"
            ),
            lambda d: f"{draw('string', d)}.find('{choose(PATTERNS)}')",
            lambda d: f"{draw('list', d)}.join({draw('string', d)})",
            lambda d: (
                f"string({draw(choose(['int', 'uint', 'double', 'string', 'bool', 'bytes', 'dyn']), d)})"
            ),
            lambda d: f"strings.quote({draw('string', d)})",
            lambda d: (
                f"'{choose(['%s', '%d', '%s-%s', '%x', '%b', '%.2f', '%e'])}'.format([{draw('dyn', d)}])"
            ),
            lambda d: self._choice("string", d),
            lambda d: self._bind("string", d),
        ]

    def _bytess(self) -> list[Callable[[int], str]]:
        draw = self.draw
        return [
            lambda d: f"bytes({draw('string', d)})",
            lambda d: f"({draw('bytes', d)} + {draw('bytes', d)})",
        ]

    def _quantitys(self) -> list[Callable[[int], str]]:
        draw, choose = self.draw, self._random.choice
        return [
            lambda d: f"quantity({draw('string', d)})",
            lambda d: (
                f"{draw('quantity', d)}.{choose(['add', 'sub'])}({draw(choose(['quantity', 'int']), d)})"
            ),
            lambda _: f"device.capacity['{choose(['d.io', 'x.io', 'q'])}'].{choose(['mem', 'c'])}",
            lambda _: "device.capacity['d.io'].?mem.orValue(quantity('1'))",
        ]

    def _semvers(self) -> list[Callable[[int], str]]:
        draw = self.draw
        return [
            lambda d: f"semver({draw('string', d)})",
            lambda d: f"semver({draw('string', d)}, {draw('bool', d)})",
            lambda _: "device.attributes['d.io'].v",
            lambda _: "device.attributes['d.io'].w",
        ]

    def _lists(self) -> list[Callable[[int], str]]:
        draw, choose = self.draw, self._random.choice

        def items(d: int) -> str:
            kind = choose(["int", "string", "bool", "double", "dyn", "list"])
            return f"[{', '.join(draw(kind, d) for _ in range(self._random.randrange(4)))}]"

        def loop(d: int) -> str:
            macro, count = choose([("map", 1), ("filter", 1), ("transformList", 2)])
            body = "bool" if macro == "filter" else choose(["int", "string", "dyn"])
            return self._loop(choose(["list", "map", "dyn"]), macro, count, ["int", "dyn"], body, d)

        return [
            items,
            items,
            loop,
            loop,
            lambda d: f"({draw('list', d)} + {draw('list', d)})",
            lambda d: (
                f"{draw('list', d)}.{choose(['reverse', 'distinct', 'flatten', 'sort', 'unwrapOpt'])}()"
            ),
            lambda d: f"{draw('list', d)}.slice({draw('int', d)}, {draw('int', d)})",
            lambda d: f"{draw('string', d)}.split({draw('string', d)})",
            lambda d: f"{draw('string', d)}.split({draw('string', d)}, {draw('int', d)})",
            lambda d: f"{draw('string', d)}.findAll('{choose(PATTERNS)}')",
            lambda d: f"[?{draw('optional', d)}, ?{draw('optional', d)}]",
            lambda _: f"lists.range({choose([0, 1, 3])})",
            lambda d: self._loop("list", "sortBy", 1, ["int"], "int", d),
            lambda _: f"device.attributes['d.io'].{choose(['ss', 'ii', 'bb', 'vv'])}",
        ]

    def _maps(self) -> list[Callable[[int], str]]:
        draw, choose = self.draw, self._random.choice
        return [
            lambda d: f"{{{draw('string', d)}: {draw('dyn', d)}}}",
            lambda d: f"{{{draw('int', d)}: {draw('int', d)}, {draw('int', d)}: {draw('int', d)}}}",
            lambda d: f"{{?{draw('string', d)}: {draw('optional', d)}}}",
            lambda _: f"device.attributes['{choose(['d.io', 'x.io', 'q'])}']",
            lambda _: "device.capacity",
            lambda d: self._loop(
                choose(["list", "map"]), "transformMap", 2, ["int", "dyn"], "dyn", d
            ),
            lambda d: self._loop(
                choose(["list", "map"]), "transformMapEntry", 2, ["int", "dyn"], "map", d
            ),
        ]

    def _optionals(self) -> list[Callable[[int], str]]:
        draw, choose = self.draw, self._random.choice
        return [
            lambda d: f"optional.of({draw('dyn', d)})",
            lambda d: (
                f"optional.ofNonZeroValue({draw(choose(['int', 'string', 'list', 'dyn']), d)})"
            ),
            lambda d: f"{draw('optional', d)}.or({draw('optional', d)})",
            lambda d: f"{draw('map', d)}[?{draw('string', d)}]",
            lambda d: f"{draw('list', d)}[?{draw('int', d)}]",
            lambda d: f"{draw(choose(['map', 'dyn', 'optional']), d)}.?a",
            lambda d: f"{draw('list', d)}.{choose(['first', 'last'])}()",
            lambda d: self._loop(
                "optional",
                choose(["optMap", "optFlatMap"]),
                1,
                ["dyn"],
                choose(["dyn", "optional"]),
                d,
            ),
        ]

    def _dyns(self) -> list[Callable[[int], str]]:
        draw, choose = self.draw, self._random.choice
        return [
            lambda _: self._draw_attribute(),
            lambda _: self._draw_attribute(),
            lambda _: self._draw_attribute(),
            lambda d: f"dyn({draw(choose(TYPES), d)})",
            lambda d: f"{draw('optional', d)}.orValue({draw('dyn', d)})",
            lambda d: f"{draw('optional', d)}.value()",
            lambda d: (
                f"{draw('list', d)}[{draw(choose(['int', 'int', 'dyn', 'uint', 'double']), d)}]"
            ),
            lambda d: f"{draw('map', d)}[{draw(choose(['string', 'int', 'dyn']), d)}]",
            self._field,
            lambda d: (
                f"({draw('dyn', d)} {choose('+-*/%')} {draw(choose(['dyn', 'int', 'string', 'double']), d)})"
            ),
            lambda d: f"type({draw(choose(TYPES), d)})",
            lambda d: self._choice("dyn", d),
            lambda d: self._bind("dyn", d),
            lambda _: "null",
        ]

    def _field(self, depth: int) -> str:
        operand = self.draw(self._random.choice(["map", "map", "dyn", "optional"]), depth)
        return f"{operand}.{self._random.choice(['a', 's', 'zz'])}"

    def _choice(self, kind: str, depth: int) -> str:
        condition = self.draw(self._random.choice(["bool", "bool", "dyn"]), depth)
        return f"({condition} ? {self.draw(kind, depth)} : {self.draw(kind, depth)})"

    def _bind(self, kind: str, depth: int) -> str:
        name, bound = self._random.choice(_NAMES), self._random.choice(TYPES)
        value = self.draw(bound, depth)
        return f"cel.bind({name}, {value}, {self._within([(name, bound)], kind, depth)})"

    def _loop(
        self, over: str, macro: str, count: int, kinds: list[str], body: str, depth: int
    ) -> str:
        names = self._random.sample(_NAMES, count)
        target = self.draw(over, depth)
        inside = self._within(list(zip(names, kinds, strict=False)), body, depth)
        return f"{target}.{macro}({', '.join(names)}, {inside})"

    def _within(self, variables: list[tuple[str, str]], kind: str, depth: int) -> str:
        before = list(self._variables)
        self._variables += variables
        drawn = self.draw(kind, depth)
        self._variables = before
        return drawn
