"""Koordinator's choice of nodes for a gang that is gathered in layers of the network, once more, from domain to domain.

Source: koordinator-sh/koordinator (Apache-2.0), pkg/scheduler/plugins/coscheduling/core/network_topology_solver.go at a7a1b76b.
Written anew from its rules:

- The places of nodes are added up, and rounded down to the multiple of each layer.
- From the layer that must gather the pods downwards, the finest layer counts at which a domain takes all of them, and all
  domains above it do.
- Of its domains that one comes first whose pods have the most company, then the one with the fewest places; what is equal
  is decided by the domain above, and at last by name.
- Within it, domains with the most company, then with the most places, are filled first.
"""

from dataclasses import dataclass, field


@dataclass
class Domain:
    """A domain of a layer, 0 being the cluster."""

    name: str
    layer: int
    parent: "Domain | None" = None
    places: int = 0
    company: int = 0
    children: "list[Domain]" = field(default_factory=list)


@dataclass
class Node:
    """A node: its values at the layers from the widest on, what fits on it, and how many pods keep company there."""

    name: str
    values: tuple[str, ...]
    places: int
    company: int = 0


def grow(nodes: list[Node], n_layers: int) -> Domain:
    """Grow the tree; a node that lacks only the finest layer is a domain of its own there, any other one is left out."""
    root = Domain("", 0)
    known: dict[tuple[str, ...], Domain] = {(): root}
    for node in nodes:
        values = node.values
        if len(values) == n_layers - 1:
            # A tuple within keeps the names of nodes apart from values.
            values = (*values, f"\0{node.name}")
        if len(values) != n_layers:
            continue
        at = root
        for i in range(n_layers):
            key = values[: i + 1]
            if key not in known:
                known[key] = Domain(values[i].strip("\0"), i + 1, at)
                at.children.append(known[key])
            at = known[key]
        at.children.append(Domain(node.name, n_layers + 1, at, node.places, node.company))
    return root


def add_up(domain: Domain, multiples: dict[int, int]) -> None:
    for child in domain.children:
        add_up(child, multiples)
    if domain.children:
        domain.places = sum(child.places for child in domain.children)
        domain.company = sum(child.company for child in domain.children)
    multiple = multiples.get(domain.layer - 1, 1)
    domain.places -= domain.places % multiple


def list_layer(root: Domain, layer: int) -> list[Domain]:
    found = [root]
    for _ in range(layer):
        found = [child for one in found for child in one.children]
    return found


def make_key(domain: Domain, sign: int) -> tuple[object, ...]:
    """Make the key by which domains of one layer are sorted; ``sign`` 1 puts few places first, -1 many."""
    company, places = [], []
    at: Domain | None = domain
    while at is not None:
        company.append(-at.company)
        places.append(sign * at.places)
        at = at.parent
    return (*company, *places, domain.name)


def share_out(
    domain: Domain, wanted: int, multiples: dict[int, int], n_layers: int
) -> list[tuple[str, int]]:
    multiple = multiples.get(domain.layer - 1, 1)
    left = min(domain.places, wanted)
    left -= left % multiple
    if domain.layer == n_layers + 1:
        return [(domain.name, left)]
    found: list[tuple[str, int]] = []
    for child in sorted(domain.children, key=lambda one: make_key(one, -1)):
        part = share_out(child, left, multiples, n_layers)
        left -= sum(n for _, n in part)
        found += part
    return found


def choose(
    nodes: list[Node],
    n_layers: int,
    wanted: int,
    *,
    must: int = -1,
    multiples: dict[int, int] | None = None,
) -> list[tuple[str, int]] | None:
    """Choose how many pods go to which nodes, in order; None if no domain takes them all.

    A layer is its place among those above the nodes, the widest being 0; the nodes are the layer ``n_layers``.
    """
    multiples = multiples or {}
    root = grow(nodes, n_layers)
    add_up(root, multiples)
    layer = [one for one in list_layer(root, must + 1) if one.places >= wanted]
    candidates = layer
    while layer:
        candidates = layer
        layer = [child for one in layer for child in one.children if child.places >= wanted]
    for candidate in sorted(candidates, key=lambda one: make_key(one, 1)):
        found = [(name, n) for name, n in share_out(candidate, wanted, multiples, n_layers) if n]
        if sum(n for _, n in found) >= wanted:
            return found
    return None
