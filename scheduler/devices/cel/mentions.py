"""Which attributes an expression mentions."""

from __future__ import annotations

from scheduler.devices.cel.syntax import Call, Fold, Ident, ListOf, Literal, Node, Select, Slot
from scheduler.devices.cel.validating import list_children


def find_attributes(tree: Node) -> frozenset[str] | None:
    """Return the attributes that an expression mentions, or ``None`` if it may look at any."""
    finder = _Finder()
    finder.look(tree)
    return None if finder.is_open else frozenset(finder.found)


class _Finder:
    def __init__(self) -> None:
        self.found: set[str] = set()
        self.is_open = False
        self._domains: dict[Slot, str] = {}
        self._seen: set[int] = set()

    def look(self, root: Node) -> None:
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if id(node) in self._seen:
                continue
            self._seen.add(id(node))
            if isinstance(node, Fold) and (domain := self._find_domain(node)):
                self._domains[node.accu] = domain
                waiting.append(node.result)
            elif not self._read_chain(node, waiting):
                waiting += list_children(node)

    def _find_domain(self, node: Fold) -> str:
        """Return the domain whose attributes a binding names, such as ``cel.bind(a, device.attributes["d"], …)``."""
        path = _split(node.init)
        is_bound = isinstance(node.over, ListOf) and not node.over.items
        if (
            is_bound
            and path
            and _is_device(path[0])
            and len(path[1]) == 2
            and path[1][0] == "attributes"
        ):
            return str(path[1][1] or "")
        return ""

    def _read_chain(self, node: Node, waiting: list[Node]) -> bool:
        """Note what a chain from the device, or from a bound domain, mentions; say whether it is one."""
        path = _split(node)
        if path is None:
            return False
        base, keys, indexes = path
        waiting += indexes
        domain = self._domains.get(base.slot) if base.slot is not None else None
        if domain is not None:
            self._note(domain, keys[0] if keys else None)
        elif _is_device(base):
            if not keys:
                self.is_open = True
            elif keys[0] == "attributes":
                self._note(keys[1] if len(keys) > 1 else None, keys[2] if len(keys) > 2 else None)
        return True

    def _note(self, domain: str | None, name: str | None) -> None:
        if domain is None or name is None:
            self.is_open = True
        else:
            self.found.add(f"{domain}/{name}")


def _is_device(base: Ident) -> bool:
    return base.slot is None and base.name.removeprefix(".") == "device"


def _split(node: Node) -> tuple[Ident, list[str | None], list[Node]] | None:
    """Split a chain into the name that it begins with, its keys where they are texts, and its other indexes."""
    keys: list[str | None] = []
    indexes: list[Node] = []
    while True:
        if isinstance(node, Select):
            keys.append(node.field)
            node = node.operand
        elif isinstance(node, Call) and node.function in {"_[_]", "_[?_]", "_?._"}:
            operand, index = node.args
            is_text = isinstance(index, Literal) and type(index.value) is str
            keys.append(index.value if is_text and isinstance(index, Literal) else None)
            if not is_text:
                indexes.append(index)
            node = operand
        else:
            break
    return (node, keys[::-1], indexes) if isinstance(node, Ident) else None
