"""Groups that name each other: they are placed together, as parts of one group that no object stands for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from scheduler.api.groups.definitions import Definition, GroupKey, Part
from scheduler.errors import Mistake

# The kind of such a group. The kind of its parts stands behind it.
_JOINT = "Groups"
_PLAIN_NAME = re.compile(r"[\w.-]+")


class Joints:
    """The groups of groups by key. A tenant writes the names, which may have any characters.

    So nothing is read back from a key, and unlike groups of groups have unlike keys.
    """

    def __init__(self) -> None:
        self._parts: dict[GroupKey, tuple[GroupKey, ...]] = {}

    def join(self, parts: tuple[GroupKey, ...]) -> GroupKey:
        """Return the key of the group of some groups."""
        first = parts[0]
        rest = (f"{_write_name(one.namespace)}/{_write_name(one.name)}" for one in parts[1:])
        name = " and ".join((_write_name(first.name), *rest))
        # The first one's namespace is that of the whole.
        key = GroupKey(f"{_JOINT}.{first.kind}", first.namespace, name)
        self._parts[key] = parts
        return key

    def find_parts(self, key: GroupKey) -> tuple[GroupKey, ...]:
        """Find the groups within a group of groups; none for any other group."""
        return self._parts.get(key, ())

    def forget(self, key: GroupKey) -> None:
        """Forget a group of groups that has no pod, and lacks none."""
        self._parts.pop(key, None)


def define_joint(key: GroupKey, said: Mapping[GroupKey, Definition | None]) -> Definition:
    """Define the group of several groups that name each other, of which each says something, or nothing yet."""
    together = tuple(said)
    others = [one for one, found in said.items() if found and found.together != together]
    problem = None
    if others:
        text = f"{others[0]} does not name the same groups; each group must name all of them"
        problem = Mistake("gang groups", text)
    # Pods of all of them go where the first one says that its own go.
    constraint = next(
        (one.root.constraint for one in said.values() if one and one.root.constraint), None
    )
    return Definition(key, Part("", len(together), constraint=constraint), problem=problem)


def _write_name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else json.dumps(name)
