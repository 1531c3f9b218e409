"""Text to tree."""

from __future__ import annotations

import math
from typing import Any

from scheduler.devices.cel.errors import Complaint, Complaints
from scheduler.devices.cel.lexer import Word, read_bytes, read_string, split_words
from scheduler.devices.cel.macros import expand_macro
from scheduler.devices.cel.syntax import (
    Call,
    Entry,
    Ident,
    ListOf,
    Literal,
    MapOf,
    Node,
    Select,
    Struct,
)
from scheduler.devices.cel.values import INT_MAX, INT_MIN, UINT_MAX, Uint

# cel-go allows 250. A level takes Python at most seven calls to parse and five to check or to evaluate, of the thousand
# that a thread may be deep in; those who call take some.
DEPTH_LIMIT = 80
# The API server admits 10 KiB; files are read as they are.
LENGTH_LIMIT = 100_000
_RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)
# How tightly operators bind; each takes operands that bind more tightly on its right.
_LOGIC = frozenset(["&&", "||"])
_BINDING = {
    "||": 1,
    "&&": 2,
    **dict.fromkeys(("<", "<=", ">=", ">", "==", "!=", "in"), 3),
    **dict.fromkeys("+-", 4),
    **dict.fromkeys("*/%", 5),
}
_EXPECTED = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
_LITERALS = frozenset(["int", "uint", "double", "string", "bytes"])
# What an expression begins with.
_STARTS = _LITERALS | {"[", "{", "(", ".", "-", "!", "true", "false", "null", "name"}
_CONSTANTS = {"true": True, "false": False, "null": None}


def parse(source: str) -> Node:
    """Parse an expression; macros are expanded.

    Raises:
        Complaints: it is none.
    """
    if len(source) > LENGTH_LIMIT:
        text = (
            f"expression code point size exceeds limit: size: {len(source)}, limit {LENGTH_LIMIT}"
        )
        raise Complaints([Complaint(-1, text)])
    return _Parser(*split_words(source)).parse()


class _Parser:
    def __init__(self, words: list[Word], complaints: list[Complaint]) -> None:
        self._words = words
        self._next = 0
        self._depth = 0
        self._complaints = complaints

    def parse(self) -> Node:
        node = self._parse_expression()
        if self._peek().sort != "end":
            says = "extraneous" if self._peek(1).sort == "end" else "mismatched"
            self._fail(f"{says} input '{self._peek().text}' expecting <EOF>")
        if self._complaints:
            raise Complaints(self._complaints)
        return node

    def _peek(self, ahead: int = 0) -> Word:
        return self._words[min(self._next + ahead, len(self._words) - 1)]

    def _take(self, *sorts: str) -> Word | None:
        """Take the next word if it is of one of the sorts."""
        word = self._words[self._next]
        if word.sort not in sorts:
            return None
        self._next += 1
        return word

    def _want(self, sort: str, name: str, *, or_else: str = "") -> Word:
        word = self._take(sort)
        if word is None:
            here = self._peek().text
            expected = f"{{{name}, {or_else}}}" if or_else else name
            if self._peek(1).sort == sort:
                self._fail(f"extraneous input '{here}' expecting {expected}")
            if (self._peek().sort in _STARTS) == (sort == ":"):
                self._fail(f"missing {name} at '{here}'")
            self._fail(f"mismatched input '{here}' expecting {expected}")
        assert word is not None  # noqa: S101 - _fail raises
        return word

    def _fail(self, text: str) -> None:
        self._complaints.append(Complaint(self._peek().at, f"Syntax error: {text}"))
        raise Complaints(self._complaints)

    def _complain(self, at: int, text: str) -> Node:
        """Note what is wrong, and go on with something in its place."""
        self._complaints.append(Complaint(at, text))
        return Literal(at, None)

    def _deepen(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_LIMIT:
            raise Complaints([Complaint(-1, f"expression recursion limit exceeded: {DEPTH_LIMIT}")])

    def _parse_expression(self) -> Node:
        self._deepen()
        node = self._parse_operators(1)
        if question := self._take("?"):
            then = self._parse_operators(1)
            self._want(":", "':'")
            node = Call(question.at, "_?_:_", [node, then, self._parse_expression()])
        self._depth -= 1
        return node

    def _parse_operators(self, least: int) -> Node:
        """Parse operators that bind at least as tightly; a chain of them is a level of the tree for each.

        Only a chain of ``&&`` or of ``||`` is one level.
        """
        node = self._parse_unary()
        chain: Call | None = None
        deeper = 0
        while (binding := _BINDING.get(self._peek().sort, 0)) >= least:
            operator = self._words[self._next]
            self._next += 1
            right = self._parse_operators(binding + 1)
            name = "@in" if operator.sort == "in" else f"_{operator.sort}_"
            if chain is not None and chain.function == name:
                chain.args.append(right)
                continue
            node = Call(operator.at, name, [node, right])
            chain = node if operator.sort in _LOGIC else None
            deeper += 1
            self._deepen()
        self._depth -= deeper
        return node

    def _parse_unary(self) -> Node:
        sign = self._take("!", "-")
        if sign is None:
            return self._parse_member(None)
        count = 1
        while self._take(sign.sort):
            count += 1
        if sign.sort == "-" and count == 1 and self._peek().sort in {"int", "double"}:
            return self._parse_member(sign)
        minus = self._take("-") if self._peek(1).sort in {"int", "double"} else None
        node = self._parse_member(minus)
        if count % 2 == 0:
            return node
        return Call(sign.at, "!_" if sign.sort == "!" else "-_", [node])

    def _parse_member(self, minus: Word | None) -> Node:
        node = self._parse_primary(minus)
        deeper = 0
        while word := self._take(".", "["):
            deeper += 1
            self._deepen()
            node = (
                self._parse_index(node, word) if word.sort == "[" else self._parse_dot(node, word)
            )
        self._depth -= deeper
        return node

    def _parse_index(self, node: Node, bracket: Word) -> Node:
        name = "_[?_]" if self._take("?") else "_[_]"
        index = self._parse_expression()
        self._want("]", "']'")
        return Call(bracket.at, name, [node, index])

    def _parse_dot(self, node: Node, dot: Word) -> Node:
        is_optional = self._take("?") is not None
        name = self._take("name", "quoted")
        if name is None:
            self._fail(f"no viable alternative at input '.{self._peek().text}'")
        assert name is not None  # noqa: S101 - _fail raises
        if name.sort == "name" and not is_optional and (opened := self._take("(")):
            args = self._parse_list(")")
            return self._make_call(opened.at, name.text, args, node)
        field = name.text.strip("`")
        if is_optional:
            return Call(dot.at, "_?._", [node, Literal(name.at, field)])
        selected = Select(dot.at, node, field)
        if (opened := self._take("{")) and (path := _spell_path(selected)):
            return self._parse_struct(opened, path)
        return selected

    def _parse_list(self, closing: str) -> list[Node]:
        items: list[Node] = []
        if self._take(closing):
            return items
        items.append(self._parse_expression())
        while self._take(","):
            items.append(self._parse_expression())
        self._want(closing, f"'{closing}'")
        return items

    def _make_call(self, at: int, function: str, args: list[Node], target: Node | None) -> Node:
        expanded = expand_macro(at, function, args, target)
        if isinstance(expanded, Complaint):
            return self._complain(*expanded)
        return expanded or Call(at, function, args, target)

    def _parse_primary(self, minus: Word | None) -> Node:
        word = self._peek()
        self._next += 1
        if word.sort in _LITERALS:
            return self._parse_literal(word, minus)
        if word.sort in _CONSTANTS:
            return Literal(word.at, _CONSTANTS[word.sort])
        if word.sort in {".", "name"}:
            return self._parse_name(word)
        if word.sort in {"[", "{"}:
            return self._parse_items(word) if word.sort == "[" else self._parse_entries(word)
        if word.sort != "(":
            self._next -= 1
            says = "extraneous" if self._peek(1).sort in _STARTS else "mismatched"
            self._fail(f"{says} input '{word.text}' expecting {_EXPECTED}")
        node = self._parse_expression()
        self._want(")", "')'")
        return node

    def _parse_items(self, opened: Word) -> Node:
        items: list[Node] = []
        optional: set[int] = set()
        while not self._take("]"):
            if self._take("?"):
                optional.add(len(items))
            items.append(self._parse_expression())
            if not self._take(","):
                self._want("]", "']'", or_else="','")
                break
        return ListOf(opened.at, items, frozenset(optional))

    def _parse_entries(self, opened: Word) -> Node:
        entries: list[Entry] = []
        while not self._take("}"):
            is_optional = self._take("?") is not None
            key = self._parse_expression()
            colon = self._want(":", "':'")
            entries.append(Entry(colon.at, key, self._parse_expression(), is_optional=is_optional))
            if not self._take(","):
                self._want("}", "'}'")
                break
        return MapOf(opened.at, entries)

    def _parse_struct(self, opened: Word, name: str) -> Node:
        while not self._take("}"):
            self._take("?")
            if self._take("name", "quoted") is None:
                self._want("name", "IDENTIFIER")
            self._want(":", "':'")
            self._parse_expression()
            if not self._take(","):
                self._want("}", "'}'")
                break
        return Struct(opened.at, name)

    def _parse_name(self, word: Word) -> Node:
        dot = "." if word.sort == "." else ""
        name = self._want("name", "IDENTIFIER") if dot else word
        if name.text in _RESERVED:
            return self._complain(word.at, f"reserved identifier: {name.text}")
        if opened := self._take("("):
            return self._make_call(opened.at, dot + name.text, self._parse_list(")"), None)
        if opened := self._take("{"):
            return self._parse_struct(opened, dot + name.text)
        return Ident(name.at, dot + name.text)

    def _parse_literal(self, word: Word, minus: Word | None) -> Node:
        at = word.at if minus is None else minus.at
        try:
            return Literal(at, _read_literal(word, "" if minus is None else "-"))
        except ValueError as error:
            return self._complain(at, str(error))


def _read_literal(word: Word, sign: str) -> Any:
    """Return the value of a literal.

    Raises:
        ValueError: it has none.
    """
    text = word.text
    if word.sort in {"string", "bytes"}:
        return read_string(text) if word.sort == "string" else read_bytes(text)
    if word.sort == "double":
        value = float(sign + text)
        if math.isinf(value):
            raise ValueError("invalid double literal")
        return value
    number = _read_number(text.rstrip("uU"), sign)
    low, high = (0, UINT_MAX) if word.sort == "uint" else (INT_MIN, INT_MAX)
    if number is None or not low <= number <= high:
        raise ValueError(f"invalid {word.sort} literal")
    return Uint(number) if word.sort == "uint" else number


def _read_number(text: str, sign: str) -> int | None:
    """Read digits; none if there are more than any number has."""
    digits = text.removeprefix("0x").lstrip("0") or "0"
    if len(digits) > 20:
        return None
    return int(sign + digits, 16 if text.startswith("0x") else 10)


def _spell_path(node: Node) -> str:
    """Return the dotted name that a chain of names spells, or nothing."""
    fields: list[str] = []
    while isinstance(node, Select):
        fields.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(fields)]) if isinstance(node, Ident) else ""
