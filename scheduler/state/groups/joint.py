"""The keys of groups that name each other: they are placed together, as parts of one group that no object stands for."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.api.groups.definitions import GroupKey

# The kind of a group of groups that name each other. The kind of these stands behind it.
JOINT = "Groups"
# No name of an object has these characters.
_BETWEEN_GROUPS, _BETWEEN_WORDS = " and ", "/"


def make_joint_key(together: Iterable[GroupKey]) -> GroupKey:
    """Make the key of a group of several groups."""
    members = tuple(together)
    first = members[0]
    # The first one's namespace is that of the whole.
    rest = (f"{one.namespace}{_BETWEEN_WORDS}{one.name}" for one in members[1:])
    return GroupKey(
        f"{JOINT}.{first.kind}", first.namespace, _BETWEEN_GROUPS.join((first.name, *rest))
    )


def is_joint(key: GroupKey) -> bool:
    """Whether a key is that of a group of groups."""
    return key.kind.startswith(f"{JOINT}.")


def split_joint_key(key: GroupKey) -> tuple[GroupKey, ...]:
    """Return the groups within a group of groups."""
    kind = key.kind.removeprefix(f"{JOINT}.")
    first, *rest = key.name.split(_BETWEEN_GROUPS)
    others = (one.split(_BETWEEN_WORDS) for one in rest)
    return (
        GroupKey(kind, key.namespace, first),
        *(GroupKey(kind, namespace, name) for namespace, name in others),
    )
