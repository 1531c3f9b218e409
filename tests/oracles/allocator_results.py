"""What is written on claims once their devices are found, and how to compare it with what upstream writes."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from tests.oracles.allocator_pools import LATER, exact
from tests.oracles.allocator_rules import Attempt, RefusedError, Request, Rules, Taken

Json = dict[str, Any]
SHARE = "share"


def write(rules: Rules, found: Attempt) -> list[Json]:
    """One result for each claim; share ids are all written alike."""
    return [_result(rules, found, claim) for claim in range(len(rules.claims))]


def normal(results: list[Json] | None) -> Any:
    """Results with quantities as numbers, and without what is empty."""
    return _normal(results, is_amounts=False)


def _normal(value: Any, *, is_amounts: bool) -> Any:
    if isinstance(value, dict):
        kept = {
            key: _normal(one, is_amounts=key == "consumedCapacity") for key, one in value.items()
        }
        if is_amounts:
            return {key: exact(one) for key, one in kept.items()}
        return {key: one for key, one in kept.items() if one not in (None, "", [], {})}
    if isinstance(value, list):
        return [_normal(one, is_amounts=False) for one in value]
    return value


def _given(**parts: Any) -> Json:
    return {key: value for key, value in parts.items() if value not in (None, [], {})}


def _result(rules: Rules, found: Attempt, claim: int) -> Json:
    taken = found.of_claim(claim)
    chosen = [one for one in found.chosen if one.claim == claim]
    devices = _given(
        results=[_device(rules, one) for one in taken],
        config=list(_config(rules, rules.claims[claim], chosen)),
    )
    return _given(devices=devices, nodeSelector=_node_selector(rules, claim, taken))


def _device(rules: Rules, one: Taken) -> Json:
    driver, pool, device = one.device.id
    is_share = one.device.is_shareable and "ConsumableCapacity" in rules.on
    conditions = one.device.body if "DeviceBindingAndStatus" in rules.on else {}
    return _given(
        request=one.request.name,
        driver=driver,
        pool=pool,
        device=device,
        adminAccess=one.request.is_admin or None,
        tolerations=one.request.body.get("tolerations"),
        bindingConditions=conditions.get("bindingConditions"),
        bindingFailureConditions=conditions.get("bindingFailureConditions"),
        shareID=SHARE if is_share else None,
        consumedCapacity={name: _text(amount) for name, amount in one.capacity.items()},
        skipNodeOperations=(
            one.device.slice["spec"].get("skipNodeOperations") if rules.on & LATER else None
        ),
    )


def _text(amount: Fraction) -> str:
    if amount.denominator == 1:
        return str(amount)
    return f"{amount * 10**9}n"


def _config(rules: Rules, claim: Json, chosen: list[Request]) -> Iterator[Json]:
    """Those of classes first, each class once, then those of the claim."""
    names = [one.name for one in chosen]
    for of_class in dict.fromkeys(one.body["deviceClassName"] for one in chosen):
        of_it = [one.name for one in chosen if one.body["deviceClassName"] == of_class]
        for one in rules.classes[of_class]["spec"].get("config") or ():
            yield _entry("FromClass", of_it, one, chosen)
    for one in claim["spec"]["devices"].get("config") or ():
        wanted = one.get("requests") or []
        if not wanted or any(request.is_among(wanted) for request in chosen):
            yield _entry("FromClaim", wanted, one, chosen)
    assert len(set(names)) == len(names)


def _entry(source: str, names: list[str], config: Json, chosen: list[Request]) -> Json:
    """What covers all requests names none."""
    is_for_all = all(request.is_among(names) for request in chosen)
    return _given(source=source, requests=[] if is_for_all else names, opaque=config.get("opaque"))


def _node_selector(rules: Rules, claim: int, taken: list[Taken]) -> Json | None:
    expressions: list[Json] = []
    fields: list[Json] = []
    for one in taken:
        spec = one.device.slice["spec"]
        chooser = one.device.body if spec.get("perDeviceNodeSelection") else spec
        if chooser.get("nodeName") is not None or one.device.body.get("bindsToNode"):
            name = rules.node["metadata"]["name"]
            only = {"key": "metadata.name", "operator": "In", "values": [name]}
            return {"nodeSelectorTerms": [{"matchFields": [only]}]}
        terms = (chooser.get("nodeSelector") or {}).get("nodeSelectorTerms") or []
        if len(terms) > 1:
            raise RefusedError(
                f"create NodeSelector for claim {rules.claims[claim]['metadata']['name']}:"
                f" unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            )
        for term in terms:
            _add_new(fields, term.get("matchFields") or [])
            _add_new(expressions, term.get("matchExpressions") or [])
    term = _given(matchExpressions=expressions, matchFields=fields)
    return {"nodeSelectorTerms": [term]} if term else None


def _add_new(known: list[Json], more: list[Json]) -> None:
    def key(one: Json) -> tuple[str, str, frozenset[str]]:
        return one["key"], one["operator"], frozenset(one.get("values") or ())

    known += [
        one
        for i, one in enumerate(more)
        if key(one) not in {key(other) for other in [*known, *more[:i]]}
    ]
