"""Tiny worlds for the twins that place groups and make room for them, and all placements there are in one."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations, product

from hypothesis import strategies as st

from tests.oracles.together import WHOLE, Apart, Card, Group, Member, Near, Node, Parted, Places


def list_placements(group: Group, nodes: Sequence[Node]) -> Iterator[Places]:
    """Yield all placements that keep the rules, each judged as a whole."""
    choices = []
    for member in group.members:
        ways: list[tuple[str, tuple[int, ...]] | None] = [None]
        for node in nodes:
            ways += [(node.name, c) for c in combinations(range(len(node.cards)), member.cards)]
        choices.append(ways)
    for picked in product(*choices):
        names = [one.name for one in group.members]
        places = {name: way for name, way in zip(names, picked, strict=True) if way is not None}
        if keeps_rules(group, nodes, places):
            yield places


def keeps_rules(group: Group, nodes: Sequence[Node], places: Places) -> bool:
    where = {name: node for name, (node, _) in places.items()}
    labels = {node.name: node.labels for node in nodes}
    if group.domain:
        values = {labels[node].get(group.domain) for node in where.values()}
        if None in values or len(values) > 1:
            return False
    for one in group.members:
        own = labels[where[one.name]] if one.name in where else one.labels
        if any(own.get(key) != value for key, value in one.labels.items()):
            return False
    for rule in group.apart:
        met = [labels[where[one]].get(rule.label) for one in sorted(rule.members & set(where))]
        met = [value for value in met if value is not None]
        if len(met) != len(set(met)):
            return False
    if not keeps_near(group.near, labels, where):
        return False
    return all(fits_on(group.members, node, places) for node in nodes)


def keeps_near(
    near: Sequence[Near], labels: Mapping[str, Mapping[str, str]], where: Mapping[str, str]
) -> bool:
    """Whether members can have come to their nodes in any order in which each was content when it came.

    ``labels`` are those of nodes, ``where`` the nodes of members.
    """
    return not near or any(
        all(_was_content(near, labels, where, order[: i + 1]) for i in range(len(order)))
        for order in permutations(where)
    )


def _was_content(
    near: Sequence[Near],
    labels: Mapping[str, Mapping[str, str]],
    where: Mapping[str, str],
    order: tuple[str, ...],
) -> bool:
    """Whether the last of some members came to a place that is near enough to the others."""
    *earlier, name = order
    rules = [one for one in near if name in one.members]
    own = labels[where[name]]
    counting = [one for one in earlier if all(one in rule.wanted for rule in rules)]
    keys = {rule.label for rule in rules}
    if not keys <= own.keys():
        return False
    if not any(keys & labels[where[one]].keys() for one in counting):
        return all(name in rule.wanted for rule in rules)
    return all(
        any(labels[where[one]].get(rule.label) == own[rule.label] for one in counting)
        for rule in rules
    )


def fits_on(members: Sequence[Member], node: Node, places: Places) -> bool:
    """Whether a node and its cards have what all those together request that are placed there."""
    there = [one for one in members if one.name in places and places[one.name][0] == node.name]
    total: Counter[str] = Counter()
    for one in there:
        total.update(one.requests)
    if any(each > node.free.get(key, 0) for key, each in total.items() if each):
        return False
    for row, card in enumerate(node.cards):
        on = [one for one in there if row in places[one.name][1]]
        if len(on) > card.sharers:
            return False
        if sum(one.memory for one in on) > card.memory or sum(one.cores for one in on) > card.cores:
            return False
        if any(one.cores == WHOLE for one in on) and (card.is_used or len(on) > 1):
            return False
    return True


@st.composite
def draw_node(draw: st.DrawFn, name: str) -> Node:
    cards = draw(
        st.lists(
            st.builds(
                Card,
                memory=st.integers(0, 6),
                cores=st.sampled_from([0, 50, 100, 100]),
                sharers=st.integers(0, 3),
                is_used=st.booleans(),
            ),
            max_size=2,
        )
    )
    labels = {
        label: draw(st.sampled_from("ab")) for label in ("rack", "zone") if draw(st.integers(0, 3))
    }
    free = {"cpu": draw(st.integers(-1, 6)), "memory": draw(st.integers(0, 6))}
    return Node(name=name, free=free, cards=tuple(cards), labels=labels)


@st.composite
def draw_member(draw: st.DrawFn, name: str) -> Member:
    return Member(
        name=name,
        requests={"cpu": draw(st.integers(0, 4)), "memory": draw(st.integers(0, 3))},
        cards=draw(st.integers(0, 2)),
        memory=draw(st.integers(0, 4)),
        cores=draw(st.sampled_from([0, 0, 50, 100])),
        labels=draw(st.sampled_from([{}, {}, {}, {"rack": "a"}])),
    )


@st.composite
def draw_group(draw: st.DrawFn, *, is_near: bool = False) -> Group:
    """A group of up to three members; ``is_near``: some may want others near them."""
    members = [draw(draw_member(f"m{n}")) for n in range(draw(st.integers(1, 3)))]
    names = [one.name for one in members]
    apart = draw(
        st.lists(
            st.builds(
                Apart,
                members=st.frozensets(st.sampled_from(names)),
                label=st.sampled_from(["rack", "zone"]),
            ),
            max_size=2,
        )
    )
    return Group(
        members=tuple(members),
        minimum=draw(st.integers(1, len(members))),
        domain=draw(st.sampled_from(["", "", "rack", "zone"])),
        apart=tuple(apart),
        near=draw(draw_near(names)) if is_near else (),
    )


@st.composite
def draw_near(draw: st.DrawFn, names: Sequence[str]) -> tuple[Near, ...]:
    some = st.frozensets(st.sampled_from(names))
    rule = st.builds(Near, members=some, wanted=some, label=st.sampled_from(["rack", "zone"]))
    return tuple(draw(st.lists(rule, max_size=3)))


@st.composite
def draw_parted(draw: st.DrawFn) -> Parted:
    """A group of two parts with three members."""
    members = [draw(draw_member(f"m{n}")) for n in range(3)]
    n_first = draw(st.integers(1, 2))
    parts = tuple(
        Group(
            members=tuple(mine),
            minimum=draw(st.integers(1, len(mine))),
            domain=draw(st.sampled_from(["", "rack", "zone"])),
        )
        for mine in (members[:n_first], members[n_first:])
    )
    domain = draw(st.sampled_from(["", "", "zone"]))
    near = draw(draw_near([one.name for one in members]))
    return Parted(parts=parts, minimum=draw(st.integers(1, 2)), domain=domain, near=near)


def keeps_parts(group: Parted, nodes: Sequence[Node], places: Places) -> bool:
    """Whether a placement of all members has the minimum of as many parts as asked for, and of no other part any."""
    labels = {node.name: node.labels for node in nodes}
    n_met = 0
    for part in group.parts:
        there = [labels[places[one.name][0]] for one in part.members if one.name in places]
        if there and (len(there) < part.minimum or not _share(part.domain, there)):
            return False
        n_met += bool(there)
    everywhere = [labels[node] for node, _ in places.values()]
    return n_met >= group.minimum and _share(group.domain, everywhere)


def _share(label: str, there: Sequence[Mapping[str, str]]) -> bool:
    """Whether nodes are in one domain of a label, if there is one."""
    if not label:
        return True
    values = {labels.get(label) for labels in there}
    return None not in values and len(values) <= 1
