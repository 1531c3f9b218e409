"""What the kernel reads about the pending claims of a pod."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.api.claims.requests import ClaimShape, Leaf, Request
from scheduler.api.placement import Mode, Placement
from scheduler.plugins.claims import masks
from scheduler.plugins.claims.masks import Mask
from scheduler.schema import columns as c
from scheduler.schema import devices as d
from scheduler.schema import empty
from scheduler.schema.handles import share_array
from scheduler.state.claims.store import Claims

# So many devices are looked at for one node at most.
_LOOKED_AT_MAX = 200_000
# Most claims have none.
_NO_CONSTRAINTS: c.Ints = share_array(np.zeros((0, d.N_CONSTRAINT), np.int64))
_NO_AMOUNTS: c.Ints = share_array(np.zeros(0, np.int64))


def compile_claims(
    shapes: Sequence[ClaimShape], placement: Placement, claims: Claims, preferred: int = 0
) -> d.ClaimAsk:
    """Compile the pending claims of a pod; the caller knows that each of them can be allocated on some node.

    ``preferred`` are the points of the alternatives that the pod's other claims have got.
    """
    if not shapes:
        return empty.make_claim_ask()
    table = claims.table
    leaves: list[tuple[int, Request, Leaf]] = []
    found: list[Mask] = []
    first, resources = [0], list[int]()
    for i, shape in enumerate(shapes):
        found += masks.get_masks(claims, shape).leaves
        for k, request in enumerate(shape.requests):
            leaves += [(i, request, leaf) for leaf in request.leaves]
            first.append(len(leaves))
            at = claims.nodes.find_row_asked(shape.resources[k]) if shape.resources else -1
            resources += [at] * len(request.leaves)
    constraints, is_about = _compile_constraints(shapes, leaves, claims)
    figures, picked = _compile_leaves(leaves, found, is_about, resources)
    n_kinds = len(table.kinds.table)
    consumes = np.full((len(leaves), n_kinds), -1, np.int64)
    amounts: list[int] = []
    for i, mask in enumerate(found):
        for kind, consumed in mask.consumed.items():
            if consumed:
                consumes[i, kind] = len(amounts)
                amounts += consumed
    return d.ClaimAsk(
        leaves=figures,
        first=np.array(first, np.int64),
        may_have=np.array([one.kinds for one in found], np.bool_).reshape(len(found), n_kinds),
        fails=np.array([one.fails for one in found], np.bool_).reshape(len(found), n_kinds),
        barred=np.array([one.barred for one in found], np.bool_).reshape(len(found), n_kinds),
        picked=np.array(picked, np.bool_).reshape(len(picked), table.columns.kind.size),
        consumes=consumes,
        amounts=np.array(amounts, np.int64) if amounts else _NO_AMOUNTS,
        constraints=constraints,
        is_about=is_about,
        policy=find_policy(placement),
        preferred=preferred,
        is_ranked=bool(figures[:, d.LEAF_WORTH].any()),
        by_state=_are_known_by_state(figures, len(picked), len(constraints)),
        most=_LOOKED_AT_MAX,
    )


def bind_requests(ask: d.ClaimAsk) -> d.ClaimAsk:
    """Let all requests count on every node, also what stands for extended resources that a device plugin serves there."""
    leaves = ask.leaves.copy()
    leaves[:, d.LEAF_RESOURCE] = -1
    by_state = _are_known_by_state(leaves, len(ask.picked), len(ask.constraints))
    return ask.replace(leaves=leaves, by_state=by_state)


def list_versions(ask: d.ClaimAsk, claims: Claims) -> tuple[int, ...]:
    """List the versions of what claims were compiled from: after any change they have to be compiled anew."""
    table = claims.table
    # Leaves that may have single devices alone depend on every device.
    written = table.written if ask.picked.shape[0] else 0
    return claims.version, table.version, written, table.most, table.most_counters


def _are_known_by_state(leaves: c.Ints, n_picky: int, n_constraints: int) -> bool:
    """Whether nodes whose devices have one state are alike for these leaves.

    They are not for what reads attributes of single devices, nor for extended resources, which nodes may serve otherwise.
    """
    return not (n_picky or n_constraints) and bool((leaves[:, d.LEAF_RESOURCE] < 0).all())


def find_policy(placement: Placement) -> int:
    """Find which of several devices come first: by the pod's GPU policy, else by its mode."""
    if placement.mode in {Mode.KUBE_SCHEDULER, Mode.FIRST_FIT}:
        return d.FIRST_FIT
    return {"binpack": d.FULLEST, "spread": d.EMPTIEST}.get(placement.gpu_policy, d.LEAST_LOSS)


def _compile_leaves(
    leaves: Sequence[tuple[int, Request, Leaf]],
    found: Sequence[Mask],
    is_about: c.Flags,
    resources: Sequence[int],
) -> tuple[c.Ints, list[c.Flags]]:
    figures = np.zeros((len(leaves), d.N_LEAF), np.int64)
    picked: list[c.Flags] = []
    groups: list[object] = []
    for i, (claim, request, leaf) in enumerate(leaves):
        mask, picky = found[i], -1
        if mask.picked is not None:
            picky = next((k for k, one in enumerate(picked) if one is mask.picked), len(picked))
            if picky == len(picked):
                picked.append(mask.picked)
        is_alone = len(request.leaves) == 1
        # Leaves that differ in their names alone are one group.
        group = (
            (claim, leaf._replace(name=""), tuple(is_about[:, i].tolist()), resources[i])
            if is_alone
            else object()
        )
        if not groups or groups[-1] != group:
            groups.append(group)
        worth = request.measure_worth(leaf)
        of_device = picky, is_alone, worth, resources[i]
        figures[i] = claim, leaf.n, leaf.is_admin, len(groups), *of_device
    return figures, picked


def _compile_constraints(
    shapes: Sequence[ClaimShape], leaves: Sequence[tuple[int, Request, Leaf]], claims: Claims
) -> tuple[c.Ints, c.Flags]:
    if not any(one.constraints for one in shapes):
        return _NO_CONSTRAINTS, np.zeros((0, len(leaves)), np.bool_)
    figures: list[tuple[int, int, bool]] = []
    is_about: list[list[bool]] = []
    for i, shape in enumerate(shapes):
        for one in shape.constraints:
            figures.append((i, claims.table.find_attribute(one.attribute), one.is_distinct))
            is_about.append(
                [
                    claim == i and one.is_about(request.name, leaf.name)
                    for claim, request, leaf in leaves
                ]
            )
    return (
        np.array(figures, np.int64).reshape(-1, d.N_CONSTRAINT),
        np.array(is_about, np.bool_).reshape(len(figures), len(leaves)),
    )
