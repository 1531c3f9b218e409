"""The keys of groups that name each other: they are placed together, as parts of one group that no object stands for."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.api.groups.definitions import GroupKey

# The kind of a group of groups that name each other.
JOINT = "groups"
# No name of an object has these characters.
_BETWEEN_GROUPS, _BETWEEN_WORDS = " and ", "|"


def make_joint_key(together: Iterable[GroupKey]) -> GroupKey:
    """Make the key of a group of several groups."""
    members = tuple(together)
    text = _BETWEEN_GROUPS.join(_BETWEEN_WORDS.join(one) for one in members)
    return GroupKey(JOINT, members[0].namespace, text)


def split_joint_key(key: GroupKey) -> tuple[GroupKey, ...]:
    """Return the groups within a group of groups."""
    parts = (one.split(_BETWEEN_WORDS) for one in key.name.split(_BETWEEN_GROUPS))
    return tuple(GroupKey(*words) for words in parts)
