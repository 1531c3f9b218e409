"""Takes up other drivers of devices, while pods run: nodes are read again, and pods keep what they hold."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np
from msgspec.structs import replace

from scheduler.api.pods import templates
from scheduler.api.pods.templates import PodTemplate
from scheduler.devices.contract import AnyDriver
from scheduler.errors import BadInput, Mistake
from scheduler.state.cluster import Cluster
from scheduler.state.nodes import NodeFacts, NodeTable
from scheduler.state.pods import PodRecord

# From the number of a driver, and the resource by which its devices were requested, to the present resource.
Renamed = dict[tuple[int, str], str]


def take_up_drivers(cluster: Cluster, drivers: tuple[AnyDriver, ...], key: Hashable) -> None:
    """Use other drivers from now on; ``key`` as in ``Devices.take_up``.

    What nodes have written is read by the new drivers as far as it has been read at all, and what waits is as it was read
    by the earlier ones: both have to be seen again.

    Raises:
        BadInput: as ``Devices.take_up``.
    """
    devices = cluster.registers.devices
    before = {one.name: one.resources for one in devices.drivers}
    devices.take_up(drivers, key)
    renamed = {
        (number, old): new
        for number, one in enumerate(devices.drivers)
        for old in before.get(one.name, ())
        for new in one.resources
        if old not in one.resources and number in devices.cards
    }
    cluster.records.forget_templates()
    _make_room(cluster.nodes)
    for pod, template in list(_list_renamed(cluster, renamed)):
        _replace_template(cluster, pod, template)
    for row in cluster.nodes.rows.values():
        facts = cluster.nodes.facts[row]
        if facts is not None:
            _register_again(cluster, row, _judge(cluster, facts))


def _make_room(nodes: NodeTable) -> None:
    """Make room for what drivers have written that are new."""
    more = len(nodes.devices.drivers) - len(nodes.n_signed)
    nodes.was_signed = np.pad(nodes.was_signed, ((0, more), (0, 0)))
    nodes.n_signed += [0] * more


def _replace_template(cluster: Cluster, pod: PodRecord, template: PodTemplate) -> None:
    """Charge a pod by another template."""
    start = int(cluster.ledger.pods.columns.start[pod.row])
    cluster.roster.detach(pod)
    kept = cluster.roster.attach(replace(pod, template=template), start)
    cluster.groups.note_pod(kept)


def _register_again(cluster: Cluster, row: int, facts: NodeFacts) -> None:
    """Read the cards of a node again."""
    pods = cluster.roster.strike(facts.name)
    cluster.nodes.facts[row] = facts
    cluster.nodes.columns.valid[row] = not facts.problem
    cluster.registers.write(row, pods)
    cluster.roster.charge(pods, row)
    cluster.registers.sum_up(row)
    cluster.moved.add(row)
    cluster.described.add(row)
    cluster.shaped += 1


def _list_renamed(cluster: Cluster, renamed: Renamed) -> Iterator[tuple[PodRecord, PodTemplate]]:
    """List the pods with a node that hold devices which are requested by another resource now, with their new templates."""
    # Like pods share a template, and those of one node have the same drivers.
    made: dict[tuple[int, tuple[str, ...]], PodTemplate] = {}
    for pods in cluster.pods_on.values() if renamed else ():
        for pod in pods.values():
            if (template := _rename(cluster, pod, renamed)) is not pod.template:
                families = tuple(one.family for one in template.list_by_family())
                yield pod, made.setdefault((id(pod.template), families), template)


def _rename(cluster: Cluster, pod: PodRecord, renamed: Renamed) -> PodTemplate:
    """Return the template of a pod with the present resource of each family that it has devices of."""
    registers, template = cluster.registers, pod.template
    row, by_name = cluster.nodes.find_row(pod.node), registers.devices.drivers

    def find(family: str) -> str:
        pool = registers.find_pool(registers.devices.find_family(family), row)
        number = int(registers.pools.columns.driver[pool])
        held = {grant.driver for grant in pod.claim}
        for (driver, old), new in renamed.items():
            if old == family and (driver == number or by_name[driver].name in held):
                return new
        return family

    if not template.most:
        return template
    asks = templates.list_asks(template)
    found = tuple(ask._replace(family=find(ask.family)) for ask in asks)
    return template if found == asks else templates.give_asks(template, found)


def _judge(cluster: Cluster, facts: NodeFacts) -> NodeFacts:
    """Return the facts of a node with what the drivers cannot read of it."""
    problem: Mistake | None = facts.problem
    try:
        for number, driver in cluster.registers.devices.cards.items():
            driver.list_cards(facts.find_reading(number).words)
    except BadInput as error:
        problem = problem or error.mistake
    return facts._replace(problem=problem)
