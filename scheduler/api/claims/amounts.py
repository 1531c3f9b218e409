"""What a request consumes of the capacities of a device.

Source: k8s.io/dynamic-resource-allocation v0.37.1, structured/internal/incubating/consumable_capacity.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.api.claims.devices import Amount, Policy

_UNITS = ("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)


def find_consumed(
    requested: Mapping[str, int], capacities: Sequence[tuple[str, Amount]]
) -> tuple[int, ...] | None:
    """Find what a request consumes of each capacity of a device; None if the device cannot serve it even when unused.

    ``requested`` names capacities as they are published. All amounts are in thousandths.
    """
    if not requested.keys() <= {name for name, _ in capacities}:
        return None
    found = []
    for name, amount in capacities:
        wanted = _consume(amount, requested.get(name))
        if wanted is None or wanted > amount.value:
            return None
        found.append(wanted)
    return tuple(found)


def _consume(amount: Amount, requested: int | None) -> int | None:
    """Return what is consumed of a capacity, None for what its policy does not allow."""
    policy = amount.policy
    if policy is None:
        return amount.value if requested is None else requested
    if requested is None:
        return amount.value if policy.default is None else policy.default
    wanted = _round_up(policy, requested)
    return wanted if wanted == policy.default or _allows(policy, wanted) else None


def _round_up(policy: Policy, requested: int) -> int:
    """Round a request up to an amount of the policy, if there is one."""
    if policy.values:
        return next((one for one in policy.values if one >= requested), requested)
    if policy.least is None:
        return requested
    if requested < policy.least:
        return policy.least
    if not policy.step:
        return requested
    return policy.least - -(requested - policy.least) // policy.step * policy.step


def _allows(policy: Policy, wanted: int) -> bool:
    if policy.values:
        return wanted in policy.values
    if policy.most is not None and wanted > policy.most:
        return False
    return not policy.step or policy.least is None or (wanted - policy.least) % policy.step == 0


def write_quantity(thousandths: int) -> str:
    """Write an amount as a quantity."""
    whole, rest = divmod(thousandths, 1000)
    if rest:
        return f"{thousandths}m"
    for unit, shift in _UNITS:
        if whole and whole % (1 << shift) == 0:
            return f"{whole >> shift}{unit}"
    return str(whole)
