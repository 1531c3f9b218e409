"""From objects and changes to what is placed: read, changed, with the pods of workloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduler.errors import BadInput
from scheduler.simulate import inventory as inventories
from scheduler.simulate import kinds
from scheduler.simulate.changes import scale, what_if
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.inventory import Inventory
from scheduler.simulate.workloads.make import Making, make


@dataclass(frozen=True, slots=True)
class Situation:
    """All there is to place pods with, and on.

    Attributes:
        inventory: what was read, with the pods that were made.
        making: which pods were made, and whose all pods are.
        displaced: the node that a pod had to leave, by uid.
        unlisted: kinds that a cluster would not list, and why.
        remarks: what else is to be known of where the objects come from.
    """

    inventory: Inventory
    making: Making
    displaced: Mapping[str, str] = field(default_factory=dict)
    unlisted: Mapping[str, str] = field(default_factory=dict)
    remarks: Sequence[str] = ()


def prepare(
    objects: Sequence[Mapping[str, Any]],
    changes: Changes,
    *,
    strict: bool,
    unlisted: Mapping[str, str] | None = None,
    remarks: Sequence[str] = (),
) -> Situation:
    """Read the objects and apply the changes; ``unlisted`` and ``remarks`` as in ``Situation``.

    Raises:
        InputProblem: an object of the changes is malformed, or strict, and any is.
        BadInput: a change names what is not there.
    """
    _check(objects, changes)
    inventory = inventories.read([*objects, *changes.nodes, *changes.policies], strict=strict)
    for problem in inventory.mistakes.values():
        if problem.position >= len(objects):
            # Left out it would leave the question unasked.
            raise problem
    displaced = what_if.apply(inventory, changes)
    scaled = scale.apply(inventory, list(changes.scale))
    return Situation(inventory, make(inventory, scaled), displaced, unlisted or {}, remarks)


def _check(objects: Sequence[Mapping[str, Any]], changes: Changes) -> None:
    for option, wanted, bodies in (
        ("--add-node", "Node", changes.nodes),
        ("--policy", "BalancePolicy", changes.policies),
    ):
        for body in bodies:
            if kinds.known(body) != wanted:
                raise BadInput(option, f"{inventories.name_of(body)} is no {wanted}")
    there = {kinds.key(body) for body in objects if kinds.known(body) == "Node"}
    for body in changes.nodes:
        if kinds.key(body) in there:
            raise BadInput("--add-node", f"{inventories.name_of(body)} is there already")
