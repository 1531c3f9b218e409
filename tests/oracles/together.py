"""Whether members of a group can be placed at once: every node and every set of cards is tried for every member.

For worlds of up to six members and six nodes. Nothing is clever but that a state that was seen before is not tried
again: what can still be placed depends only on what is left on the nodes, not on how it came about. For this, nodes
that have the same left and the same labels are alike, and so are cards of a node with the same left. Where members want
others near them, it matters who comes first, and every order is tried.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, product
from typing import TypeVar

T = TypeVar("T")

# The cores of a whole card: who asks for all of them is alone on the card.
WHOLE = 100


@dataclass(frozen=True, kw_only=True, order=True)
class Card:
    """What is left of a card, and whether somebody is on it.

    A card that takes nobody more, for whatever reason, has no sharers left.
    """

    memory: int
    cores: int = WHOLE
    sharers: int = 1
    is_used: bool = False


@dataclass(frozen=True, kw_only=True)
class Node:
    name: str
    free: Mapping[str, int]
    cards: tuple[Card, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Member:
    """What a member requests; ``memory`` and ``cores`` are taken of each of its ``cards``, which are different ones.

    Its node has all its ``labels``.
    """

    name: str
    requests: Mapping[str, int]
    cards: int = 0
    memory: int = 0
    cores: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Apart:
    """No two of these members are in one domain of the label; nodes without the label are in none."""

    members: frozenset[str]
    label: str


@dataclass(frozen=True, kw_only=True)
class Near:
    """Each of these members goes where one of the wanted is, in its domain of the label: required podAffinity.

    Of a member with several such rules only those count that all of them want. Nodes without the label are no place for
    it. If none that counts is on a node with any of the labels, a member that is wanted itself may go anywhere else.
    """

    members: frozenset[str]
    wanted: frozenset[str]
    label: str


@dataclass(frozen=True, kw_only=True)
class Group:
    """``domain``, if there is one, is a label: all members that are placed have nodes with the same value of it."""

    members: tuple[Member, ...]
    minimum: int
    domain: str = ""
    apart: tuple[Apart, ...] = ()
    near: tuple[Near, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Parted:
    """A group of parts, so many of which have their minimum placed, and none of the others any member.

    ``domain``, if there is one, is a label: all members have nodes with the same value of it. ``near`` holds for members
    of all parts.
    """

    parts: tuple[Group, ...]
    minimum: int
    domain: str = ""
    near: tuple[Near, ...] = ()


Places = dict[str, tuple[str, tuple[int, ...]]]
"""For each member that is placed its node and the indices of its cards."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Whether the minimum can be placed, how many can at most, and one way to place so many."""

    fits: bool
    most: int
    places: Places


def place_group(group: Group, nodes: Sequence[Node]) -> Answer:
    """Place as many members as can be placed at once."""
    values = [""]
    if group.domain:
        values = sorted({one.labels[group.domain] for one in nodes if group.domain in one.labels})
    best: Places = {}
    for value in values:
        inside = [one for one in nodes if not group.domain or one.labels.get(group.domain) == value]
        found = _Search(group).find(tuple(inside))
        if len(found) > len(best):
            best = found
    return Answer(fits=len(best) >= group.minimum, most=len(best), places=best)


def fits_parted(group: Parted, nodes: Sequence[Node]) -> bool:
    """Whether the minimum of a group of parts can be placed: all domains and all sets of members are tried."""
    chosen = _list_sets(group.parts, group.minimum, more=bool(group.near))
    for value, parts in product(_list_values(group.domain, nodes), chosen):
        for domains in product(*(_list_values(part.domain, nodes) for part in parts)):
            sets = [
                list(_list_sets(part.members, part.minimum, more=bool(group.near)))
                for part in parts
            ]
            for picked in product(*sets):
                members = tuple(
                    replace(one, labels={**one.labels, **own, **value})
                    for own, mine in zip(domains, picked, strict=True)
                    for one in mine
                    if all(one.labels.get(key, own[key]) == own[key] for key in own)
                    and all(one.labels.get(key, value[key]) == value[key] for key in value)
                )
                if len(members) == sum(map(len, picked)):
                    together = Group(members=members, minimum=len(members), near=group.near)
                    if _Search(together).count_all(tuple(nodes)) == len(members):
                        return True
    return False


def _list_sets(all_of: Sequence[T], minimum: int, *, more: bool) -> Iterator[tuple[T, ...]]:
    """Yield the sets of so many; ``more``: larger ones, too, as members may want extra ones near them."""
    for n in range(minimum, len(all_of) + 1 if more else minimum + 1):
        yield from combinations(all_of, n)


def _list_values(label: str, nodes: Sequence[Node]) -> list[dict[str, str]]:
    """List what the nodes of each domain of a label have in common; nothing for no label."""
    if not label:
        return [{}]
    return [
        {label: value}
        for value in sorted({one.labels[label] for one in nodes if label in one.labels})
    ]


Marks = frozenset[tuple[int, str] | tuple[str, str, str]]
"""What rules read of members that are placed.

(rule, value of its label) for each domain where a member of a rule of ``apart`` is; (member, label, value) for each that
others may want near them.
"""


Way = tuple[int, tuple[int, ...], tuple[tuple[Node, ...], Marks]]
"""The index of a node, those of its cards, and what is left then."""


@dataclass
class _Search:
    group: Group
    known: dict[tuple[object, ...], int] = field(default_factory=dict)

    @cached_property
    def labels(self) -> list[str]:
        """The labels that decide about a place."""
        asked = {label for one in self.group.members for label in one.labels}
        asked |= {rule.label for rule in self.group.apart}
        return sorted(asked | {rule.label for rule in self.group.near})

    def find(self, nodes: tuple[Node, ...]) -> Places:
        """Find the first way, in the order of members and nodes, to place as many as possible."""
        places: Places = {}
        marks: Marks = frozenset()
        left = self.group.members
        while most := self.count_most(left, nodes, marks):
            for member, rest, (row, picks, then) in self.list_steps(left, nodes, marks):
                if 1 + self.count_most(rest, *then) == most:
                    places[member.name] = nodes[row].name, picks
                    left, (nodes, marks) = rest, then
                    break
            else:
                left = left[1:]
        return places

    def count_all(self, nodes: tuple[Node, ...]) -> int:
        """Count how many members can be placed at most."""
        return self.count_most(self.group.members, nodes, frozenset())

    def count_most(self, left: tuple[Member, ...], nodes: tuple[Node, ...], marks: Marks) -> int:
        """Count how many of these members can be placed at most."""
        if not left:
            return 0
        key = (tuple(one.name for one in left), self._describe(nodes), marks)
        if key not in self.known:
            most = 0
            for _, rest, (_, _, then) in self.list_steps(left, nodes, marks):
                most = max(most, 1 + self.count_most(rest, *then))
                if most == len(left):
                    break
            if most < len(left) and not self.group.near:
                most = max(most, self.count_most(left[1:], nodes, marks))
            self.known[key] = most
        return self.known[key]

    def list_steps(
        self, left: tuple[Member, ...], nodes: tuple[Node, ...], marks: Marks
    ) -> Iterator[tuple[Member, tuple[Member, ...], Way]]:
        """Yield who may come next, who is left then, and every way: of any member if the order matters, else of the first."""
        for at, member in enumerate(left if self.group.near else left[:1]):
            for way in self.list_ways(member, nodes, marks):
                yield member, (*left[:at], *left[at + 1 :]), way

    def list_ways(self, member: Member, nodes: tuple[Node, ...], marks: Marks) -> Iterator[Way]:
        """Yield every node and every set of cards for a member, with what is left then."""
        for row, node in enumerate(nodes):
            if any(node.labels.get(key) != value for key, value in member.labels.items()):
                continue
            if not is_content(self.group.near, member.name, node.labels, marks):
                continue
            new: Marks = frozenset(
                (rule, node.labels[one.label])
                for rule, one in enumerate(self.group.apart)
                if member.name in one.members and one.label in node.labels
            )
            if new & marks:
                continue
            new |= {
                (member.name, one.label, node.labels[one.label])
                for one in self.group.near
                if member.name in one.wanted and one.label in node.labels
            }
            for picks, left in list_fits(member, node):
                yield row, picks, ((*nodes[:row], left, *nodes[row + 1 :]), marks | new)

    def _describe(self, nodes: tuple[Node, ...]) -> tuple[object, ...]:
        """Describe what is left, without what is no difference."""
        return tuple(
            sorted(
                repr(
                    (
                        [(label, one.labels.get(label)) for label in self.labels],
                        sorted(one.free.items()),
                        sorted(one.cards),
                    )
                )
                for one in nodes
            )
        )


def is_content(near: Sequence[Near], name: str, labels: Mapping[str, str], marks: Marks) -> bool:
    """Whether a node with these labels is near those whom a member wants, or the member may be the first of them."""
    rules = [one for one in near if name in one.members]
    if not rules:
        return True
    counting = frozenset.intersection(*(one.wanted for one in rules))
    there = {mark[1:] for mark in marks if mark[0] in counting}
    there &= {(one.label, value) for one in rules for _, value in there}
    if any(one.label not in labels for one in rules):
        return False
    if not there:
        return name in counting
    return all((one.label, labels[one.label]) in there for one in rules)


def list_fits(member: Member, node: Node) -> Iterator[tuple[tuple[int, ...], Node]]:
    """Yield every set of cards with which a member fits on a node, and what is left of the node then."""
    free = {key: node.free.get(key, 0) - each for key, each in member.requests.items()}
    if any(has < 0 for key, has in free.items() if member.requests[key]):
        return
    able = [row for row, card in enumerate(node.cards) if takes(card, member)]
    for picks in combinations(able, member.cards):
        cards = list(node.cards)
        for row in picks:
            cards[row] = take(cards[row], member)
        yield picks, replace(node, free={**node.free, **free}, cards=tuple(cards))


def takes(card: Card, member: Member) -> bool:
    """Whether a card takes a member."""
    if member.cores == WHOLE and card.is_used:
        return False
    return card.sharers >= 1 and card.memory >= member.memory and card.cores >= member.cores


def take(card: Card, member: Member) -> Card:
    """Return what is left of a card; nothing is left beside a member that has it whole."""
    return Card(
        memory=card.memory - member.memory,
        cores=card.cores - member.cores,
        sharers=0 if member.cores == WHOLE else card.sharers - 1,
        is_used=True,
    )
