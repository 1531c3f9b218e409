"""What a pod's claims could request otherwise, and claims that would have to lose their devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from scheduler.api.claims.amounts import write_quantity
from scheduler.api.claims.answers import ClaimKey
from scheduler.api.claims.devices import Taint
from scheduler.api.claims.requests import ClaimShape, Constraint, Leaf, Request, Toleration
from scheduler.plugins.claims import device_reasons, masks
from scheduler.plugins.claims.needs import list_pending
from scheduler.schema import columns as c
from scheduler.state.claims.objects import Claim
from scheduler.state.claims.store import Claims
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from scheduler.telling.advice import less
from scheduler.telling.advice.asking import Asking

# The most changes that are tried, and the length of an expression in a sentence.
_MOST, _EXPRESSION = 64, 60
_NAMES = 20
# In thousandths.
_ONE, _MIB = 1000, 1000 << 20


class Revise(NamedTuple):
    """A change of what a claim requests.

    Attributes:
        claim: the claim.
        request: the leaf that changes; empty for a constraint.
        what: ``count``, ``capacity``, ``selector``, ``toleration`` or ``constraint``.
        said: what to do, in words.
        shape: what the claim would request.
    """

    claim: Claim
    request: str
    what: str
    said: str
    shape: ClaimShape


class Release(NamedTuple):
    """A claim that would lose its devices, after the end of all pods that have it."""

    claim: Claim
    pods: tuple[PodRecord, ...]


class Released(NamedTuple):
    """A claim that would lose its devices, and the row of a node that would then take the pod."""

    release: Release
    row: int


def shorten(text: str) -> str:
    """Shorten an expression for a sentence."""
    plain = " ".join(text.split())
    return plain if len(plain) <= _EXPRESSION else f"{plain[: _EXPRESSION - 1]}…"


def name_pods(claims: Claims, key: ClaimKey, pods: Mapping[str, PodRecord]) -> list[PodRecord]:
    """List the pods on nodes that have a claim, by name."""
    found = (pods.get(uid) for uid in claims.list_users(key))
    return sorted((one for one in found if one is not None and one.node), key=lambda one: one.key)


def find_revisions(asking: Asking, pod: PodRecord) -> list[tuple[Revise, c.Ints]]:
    """Find single changes of the pod's claims after which it fits, with the rows on which it fits then."""
    found: list[tuple[Revise, c.Ints]] = []
    tried = 0
    for claim in list_pending(pod, asking.cluster.claims):
        for one in _list_revisions(asking, pod, claim):
            tried += 1
            if tried > _MOST:
                return found
            rows = _find_rows(asking, pod, one)
            if rows.size:
                found.append((one, rows))
    return found


def _find_rows(asking: Asking, pod: PodRecord, one: Revise) -> c.Ints:
    with asking.cluster.claims.pose_as([one.claim._replace(shape=one.shape)]):
        return asking.find_fitting(pod)


class _At(NamedTuple):
    """A leaf of a request of a claim."""

    claim: Claim
    request: Request
    leaf: Leaf

    def revise(self, what: str, said: str, changed: Leaf) -> Revise:
        """Make a change of the leaf; ``said`` is what to do there."""
        shape = self.claim.shape
        leaves = tuple(changed if one is self.leaf else one for one in self.request.leaves)
        new = self.request._replace(leaves=leaves)
        requests = tuple(new if one is self.request else one for one in shape.requests)
        where = f"in request {self.leaf.name}"
        if shape.resources:
            where = f"of {shape.resources[shape.requests.index(self.request)]} {where}"
        said = f"{said} {where} of claim {self.claim.name}"
        return Revise(self.claim, self.leaf.name, what, said, replace(shape, requests=requests))

    def request_count(self, n: int) -> Revise:
        """Request fewer devices."""
        devices = "1 device" if n == 1 else f"{n} devices"
        said = f"request {devices} instead of {self.leaf.n}"
        return self.revise("count", said, self.leaf._replace(n=n))

    def request_capacity(self, i: int, n: int) -> Revise:
        """Request ``n`` units of a capacity."""
        given = list(self.leaf.capacity)
        name, amount = given[i]
        given[i] = name, n * _choose_unit(amount)
        new, old = write_quantity(given[i][1]), write_quantity(amount)
        said = f"request {new} of capacity {name} instead of {old}"
        return self.revise("capacity", said, self.leaf._replace(capacity=tuple(given)))

    def drop_selector(self, i: int) -> Revise:
        """Drop one of the request's own selectors."""
        all_of = self.leaf.selectors
        said = f"drop selector #{i} ({shorten(all_of[i] or '')})"
        return self.revise(
            "selector", said, self.leaf._replace(selectors=(*all_of[:i], *all_of[i + 1 :]))
        )

    def tolerate(self, taints: Sequence[Taint]) -> Revise:
        """Tolerate taints of devices."""
        more = [Toleration(key, is_any_value=False, value=value, effect=effect) for key, value, effect in taints]  # fmt: skip
        said = f"tolerate {', '.join(map(write_taint, taints))}"
        tolerations = (*self.leaf.tolerations, *more)
        return self.revise("toleration", said, self.leaf._replace(tolerations=tolerations))


def write_taint(taint: Taint) -> str:
    """Write a taint of a device as kubectl writes those of nodes."""
    key, value, effect = taint
    return f"{key}{'=' + value if value else ''}:{effect}"


def _choose_unit(amount: int) -> int:
    return _MIB if amount > _MIB else _ONE


def _list_revisions(asking: Asking, pod: PodRecord, claim: Claim) -> Iterator[Revise]:
    """List the changes of a claim: smaller requests as large as they may be, the others one by one."""
    shape = claim.shape
    for request, leaf in shape.leaves:
        at = _At(claim, request, leaf)
        smaller: list[tuple[Callable[[int], Revise], int]] = [
            (at.request_count, leaf.n),
            *(
                (partial(at.request_capacity, i), -(-amount // _choose_unit(amount)))
                for i, (_, amount) in enumerate(leaf.capacity)
            ),
        ]
        found = (_find_most(asking, pod, make, too_many) for make, too_many in smaller)
        yield from filter(None, found)
        yield from map(at.drop_selector, range(len(leaf.selectors)))
        yield from map(at.tolerate, _list_taints(asking.cluster.claims, shape, leaf))
    for i, one in enumerate(shape.constraints):
        others = (*shape.constraints[:i], *shape.constraints[i + 1 :])
        said = f"drop {name_constraint(i, one)} of claim {claim.name}"
        yield Revise(claim, "", "constraint", said, replace(shape, constraints=others))


def name_constraint(i: int, one: Constraint) -> str:
    """Name a constraint by its number and its attribute."""
    which = "distinctAttribute" if one.is_distinct else "matchAttribute"
    return f"constraint #{i} ({which} {one.attribute})"


def _find_most(
    asking: Asking, pod: PodRecord, make: Callable[[int], Revise], too_many: int
) -> Revise | None:
    """Find the largest smaller request with which the pod fits."""
    n = less.find_most(lambda n: bool(_find_rows(asking, pod, make(n)).size), too_many)
    return make(n) if n else None


def _list_taints(claims: Claims, shape: ClaimShape, leaf: Leaf) -> list[tuple[Taint, ...]]:
    """List the sets of taints that alone keep a leaf from devices which would do."""
    at = next(i for i, (_, one) in enumerate(shape.leaves) if one is leaf)
    mask, known = masks.get_masks(claims, shape).leaves[at], claims.table.kinds.table.values
    barred = np.flatnonzero(mask.barred).tolist()
    return sorted({tuple(masks.list_untolerated(leaf, known[kind])) for kind in barred})


def find_releases(
    asking: Asking, pod: PodRecord, rows: Sequence[int], may_end: Callable[[PodRecord], bool]
) -> list[Released]:
    """Find claims that no pod alone has, and without which one of some nodes would take the pod; those of the fewest pods first."""
    shape, claims, cluster = asking.make_shape(pod), asking.cluster.claims, asking.cluster
    if shape is None or not shape.ask.claims.leaves.shape[0]:
        return []
    found: dict[ClaimKey, Released] = {}
    holders = list_holders(claims)
    for row in rows:
        devices = device_reasons.list_devices(claims.table.columns, row).tolist()
        keys = dict.fromkeys(
            key for at in devices for key in holders.get(claims.table.find_key(at), ())
        )
        for key in keys:
            pods = name_pods(claims, key, cluster.pods)
            if key in found or len(found) == _MOST or not all(map(may_end, pods)):
                continue
            with cluster.trial() as trial:
                trial.take_away(*(one.uid for one in pods))
                if asking.takes(shape, row):
                    # The claim goes with its only pod.
                    continue
                lifted = claims.lift_charges([key])
                try:
                    takes = asking.takes(shape, row)
                finally:
                    claims.charge_again([key], lifted)
            if takes:
                found[key] = Released(Release(claims.claims[key], tuple(pods)), row)
    return sorted(found.values(), key=lambda one: (len(one.release.pods), one.release.claim.key))


def describe_holder(cluster: Cluster, key: ClaimKey) -> dict[str, Any]:
    """Describe a claim that has a device, with its pods on nodes."""
    pods = name_pods(cluster.claims, key, cluster.pods)
    name = "/".join(cluster.claims.claims[key].path_key)
    return {"claim": name, "pods": [one.key for one in pods[:_NAMES]]}


def list_holders(claims: Claims) -> dict[object, list[ClaimKey]]:
    """List the claims that have each device, by its key; not those that only look at it."""
    found: dict[object, list[ClaimKey]] = {}
    for key in claims.claims:
        for one in claims.find_given(key) or ():
            if not one.is_admin and key not in found.setdefault(one.device, []):
                found[one.device].append(key)
    return found
