"""What is written to the claims of a pod that was placed: their devices, as kube-scheduler writes them.

Source: k8s.io/dynamic-resource-allocation v0.37.1, structured/internal/incubating, Allocate and createNodeSelector.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from scheduler.api.claims.amounts import write_quantity
from scheduler.api.claims.answers import Allotment, Given
from scheduler.api.claims.devices import PoolKey
from scheduler.api.claims.extended import draw_claim, find_pod, write_claim
from scheduler.api.claims.requests import ClaimShape, Leaf, Request
from scheduler.plugins.claims.needs import Needs
from scheduler.schema import columns as c
from scheduler.schema import devices as d
from scheduler.schema.world import Run
from scheduler.state.claims.objects import Claim
from scheduler.state.claims.pools import TWINS_MAX
from scheduler.state.claims.store import Claims
from scheduler.state.pods import PodRecord

Json = dict[str, Any]
_NOTHING: tuple[Allotment, ...] = ()
_encoder = msgspec.json.Encoder()


def list_allotments(
    pod: PodRecord,
    needs: Needs | None,
    claims: Claims,
    ask: d.ClaimAsk,
    placed: tuple[Run, int, str],
) -> tuple[Allotment, ...]:
    """List what the claims of a pod get; ``placed`` has its place in a run, and the name of its node.

    ``needs`` and ``ask`` must be those with which the node was chosen.
    """
    if needs is None:
        return _NOTHING
    run, k, node = placed
    n = int(run.n_devices[k])
    picks: list[list[tuple[int, int]]] = [[] for _ in needs.pending]
    for device, leaf in zip(run.device[k, :n].tolist(), run.leaf[k, :n].tolist(), strict=True):
        picks[int(ask.leaves[leaf, d.LEAF_CLAIM])].append((device, leaf))
    waiting, found, base = iter(picks), list[Allotment](), 0
    for claim in claims.list_claims(pod):
        mine: Allotment | None = None
        if claims.get_given(claim) is None:
            mine = _allot(claim, next(waiting), claims, (ask, base), node)
            base += len(claim.shape.leaves)
        if not find_pod(claim.key):
            found.append(mine or _join_claim(claim, claims))
        elif mine is not None and mine.given:
            # The claim is made for what classes serve on the node, if they serve anything there.
            found.append(mine._replace(made=_draw(pod, claim, mine, claims)))
    return tuple(found)


def _join_claim(claim: Claim, claims: Claims) -> Allotment:
    """Return what a pod gets that joins the pods for which a claim has devices, or was decided to get devices."""
    decided = claims.find_decision(claim.key) if claim.given is None else None
    return decided[0] if decided is not None else Allotment(claim.key, claim.uid)


def _allot(
    claim: Claim,
    picks: Sequence[tuple[int, int]],
    claims: Claims,
    asked: tuple[d.ClaimAsk, int],
    node: str,
) -> Allotment:
    """Make what a claim gets; ``asked`` has the number of its first leaf."""
    leaves, (ask, base) = claim.shape.leaves, asked
    given: list[Given] = []
    chosen: dict[str, tuple[Request, Leaf]] = {}
    for device, number in picks:
        request, leaf = leaves[number - base]
        chosen[request.name] = request, leaf
        given.append(_give(claim, claims, ask, device, number, leaf))
    allocation: Json = {
        "devices": {"results": [_write_result(one, claim.shape, claims) for one in given]}
    }
    config = _list_config(claim.shape, list(chosen.values()), claims)
    if config:
        allocation["devices"]["config"] = config
    selector = _write_selector(given, claims, node)
    if selector is not None:
        allocation["nodeSelector"] = selector
    return Allotment(claim.key, claim.uid, tuple(given), _encoder.encode(allocation))


def _draw(pod: PodRecord, claim: Claim, one: Allotment, claims: Claims) -> bytes:
    """Draw the claim for those extended resources of a pod that its devices serve."""
    chosen = {given.request for given in one.given}
    served = {
        resource
        for request, resource in zip(claim.shape.requests, claim.shape.resources, strict=True)
        if request.name in chosen
    }
    classes = {name: of for name, of in claims.backing.items() if name in served}
    return write_claim(draw_claim(pod.template.extended, classes))


def _give(
    claim: Claim, claims: Claims, ask: d.ClaimAsk, device: int, number: int, leaf: Leaf
) -> Given:
    table = claims.table
    key, kind = table.find_key(device), int(table.columns.kind[device])
    if leaf.is_admin or not table.columns.shareable[kind]:
        return Given(leaf.name, key, leaf.is_admin)
    # The core draws no random numbers; of each claim, request and device there is one share.
    share = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{claim.uid}/{leaf.name}/{key}"))
    capacities, first = table.kinds.table.values[kind].capacities, int(ask.consumes[number, kind])
    amounts = ask.amounts[first : first + len(capacities)].tolist() if first >= 0 else []
    names = [name for name, _ in capacities]
    return Given(leaf.name, key, share=share, consumed=tuple(zip(names, amounts, strict=False)))


def _write_result(one: Given, shape: ClaimShape, claims: Claims) -> Json:
    device = one.device
    result: Json = {
        "request": one.request,
        "driver": device.driver,
        "pool": device.pool,
        "device": device.name,
    }
    if one.is_admin:
        result["adminAccess"] = True
    if tolerations := shape.tolerations.get(one.request):
        result["tolerations"] = msgspec.json.decode(tolerations)
    row = claims.inventory.find_rows(PoolKey(device.driver, device.pool), device.name)[:1]
    kinds = claims.table.kinds.table.values
    if row and kinds[int(claims.table.columns.kind[row[0]])].has_conditions:
        source = claims.inventory.find_device(device)
        if source is not None and source.conditions:
            result["bindingConditions"] = list(source.conditions)
            if source.failures:
                result["bindingFailureConditions"] = list(source.failures)
    if one.share:
        result["shareID"] = one.share
        if one.consumed:
            result["consumedCapacity"] = {
                name: write_quantity(amount) for name, amount in one.consumed
            }
    return result


def _list_config(
    shape: ClaimShape, chosen: Sequence[tuple[Request, Leaf]], claims: Claims
) -> list[Json]:
    """List the configurations of the chosen classes, each once, then those of the claim that are about a chosen request."""
    found_classes = {leaf.of_class: claims.classes.get(leaf.of_class) for _, leaf in chosen}
    config = {name: one.config for name, one in found_classes.items() if one is not None}
    if not shape.config and not any(config.values()):
        return []
    by_class: dict[str, list[str]] = {}
    for _, leaf in chosen:
        by_class.setdefault(leaf.of_class, []).append(leaf.name)
    found = [
        _write_config("FromClass", requests, _encoder.encode(one.opaque))
        for name, requests in by_class.items()
        for one in config.get(name, ())
    ]
    names = {name for request, leaf in chosen for name in (request.name, leaf.name)}
    found += [
        _write_config("FromClaim", one.requests, one.opaque)
        for one in shape.config
        if not one.requests or names.intersection(one.requests)
    ]
    for one in found:
        about = one.get("requests", ())
        if all(request.name in about or leaf.name in about for request, leaf in chosen):
            one.pop("requests", None)
    return found


def _write_config(source: str, requests: Iterable[str], opaque: bytes) -> Json:
    found: Json = {"source": source}
    if requests:
        found["requests"] = list(requests)
    if (read := msgspec.json.decode(opaque)) is not None:
        found["opaque"] = read
    return found


def _write_selector(given: Sequence[Given], claims: Claims, node: str) -> Json | None:
    """Write the nodes on which all these devices can be used; None for all nodes."""
    terms: list[Json] = []
    for one in given:
        term = claims.inventory.find_term(one.device)
        if term is not None and term not in terms:
            terms.append(term)
    if {} in terms:
        return {"nodeSelectorTerms": [_write_name(node)]}
    if not terms:
        return None
    merged: Json = {}
    for term in terms:
        for field, requirements in term.items():
            there = merged.setdefault(field, [])
            there += [each for each in requirements if each not in there]
    return {"nodeSelectorTerms": [merged]}


def _write_name(node: str) -> Json:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}


def count_most(ask: d.ClaimAsk, most_on_a_node: int) -> tuple[int, int]:
    """Count the most devices that a pod can get, and the most rows of holds that these take."""
    most = 0
    for first, end in zip(ask.first[:-1].tolist(), ask.first[1:].tolist(), strict=True):
        counts = ask.leaves[first:end, d.LEAF_COUNT]
        most += most_on_a_node if (counts == 0).any() else int(counts.max())
    most = min(most, d.POD_MOST)
    return most, most * TWINS_MAX * (1 + _count_cells(ask))


def _count_cells(ask: d.ClaimAsk) -> int:
    """Count the most cells that a device has of which something is consumed."""
    if not ask.amounts.size:
        return 0
    starts: c.Ints = np.unique(ask.consumes[ask.consumes >= 0])
    ends = np.append(starts[1:], ask.amounts.size)
    return int((ends - starts).max()) if starts.size else 0
