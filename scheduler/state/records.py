"""From a pod object to the record that the cluster keeps of it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import NamedTuple
from weakref import WeakValueDictionary

import msgspec

from scheduler.api import limits, names, times, wire
from scheduler.api.cards import Grant, Grants
from scheduler.api.claims.pods import read_claims
from scheduler.api.groups import table as groups
from scheduler.api.groups.definitions import Membership
from scheduler.api.groups.readers.owners import find_owner
from scheduler.api.limits import PodLimits
from scheduler.api.pods import gpus, templates, volumes
from scheduler.devices.contract import PartialClaim
from scheduler.errors import BadInput, Mistake
from scheduler.schema import columns as c
from scheduler.state import held_asks, told_cards
from scheduler.state.nodes import NodeTable
from scheduler.state.pods import Life, PodRecord

# A template is found by a digest of so many bytes of its key: a spec can be a megabyte.
_KEY_BYTES = 20


class _Said(NamedTuple):
    """What a pod's annotations say that it holds of the devices of a family; ``is_whole``: all of that could be read."""

    family: str
    grant: Grant
    is_whole: bool


class Records:
    """Makes records, numbers pods as they arrive, and interns templates, which go with their last pod.

    Attributes:
        trusts_claims: what a pod on a node holds is what its claim says, even if that is more than the pod requests.
    """

    def __init__(
        self,
        schedulers: tuple[str, ...],
        limits: PodLimits,
        nodes: NodeTable,
        group_kinds: Collection[str] = (),
    ) -> None:
        """``schedulers`` are the names whose pods are ours; the pods of owners of ``group_kinds`` are groups.

        The drivers of ``nodes`` read what pods hold of cards.
        """
        self.trusts_claims = False
        self._group_kinds = group_kinds
        self._devices = nodes.devices
        # Records share these texts: the text of each pod would be one more object.
        self._schedulers = {name: name for name in schedulers}
        self._limits, self._offered = limits, nodes.resources
        self._templates: WeakValueDictionary[bytes, templates.PodTemplate] = WeakValueDictionary()
        # What pods ask that have kept what they asked before.
        self._held: WeakValueDictionary[
            tuple[templates.PodTemplate, held_asks.Asks], templates.PodTemplate
        ] = WeakValueDictionary()
        self._arrivals = 0

    def make_record(self, pod: wire.Pod, old: PodRecord | None) -> PodRecord:
        """Make the record of a pod, bound or pending; ``old`` is the record before, if there is one.

        The cards of a bound pod are those that its annotation names, whatever node the annotation names: the pod
        runs where it runs. The annotation of a pod that asks no cards is not even read. Never raises: what cannot
        be read stands in ``problem``.
        """
        meta, spec = pod.metadata, pod.spec
        node = spec.node_name or ""
        template = self._intern_template(pod)
        if node and (self._devices.earlier or template.problem is not None):
            template = self._keep_held(pod, template, old)
        problem = None if node else template.problem or limits.find_own_excess(pod, self._limits)
        # No container of a pod without a node has run, whatever the pod's status says.
        initialized = bool(node) and _has_initialized(pod, template)
        claim: Grants = ()
        if node and template.most and meta.annotations:
            said, mistake = self._read_claim(pod, template)
            problem = mistake or problem
            if self.trusts_claims and any(one.is_whole for one in said):
                template = self._raise_asks(template, said)
            claim = _limit_claims(said, template, initialized=initialized) if said else ()
        run_seconds = checkpoint_seconds = None
        try:
            run_seconds = groups.read_run_seconds(pod)
            checkpoint_seconds = groups.read_checkpoint_seconds(pod)
        except BadInput as error:
            problem = problem or (None if node else error.mistake)
        if old is None:
            self._arrivals += 1
        member, owned = self._read_membership(pod)
        return PodRecord(
            uid=meta.uid,
            namespace=meta.namespace,
            name=meta.name,
            node=node,
            life=Life.BOUND if node else Life.PENDING,
            template=template,
            initialized=initialized,
            claim=claim,
            priority=spec.priority,
            profile=self._schedulers.get(spec.scheduler_name or "", ""),
            gated=bool(spec.scheduling_gates),
            deleting=meta.deletion_timestamp is not None,
            labels=meta.labels,
            order=self._arrivals if old is None else old.order,
            created=meta.creation_timestamp,
            problem=problem,
            version=meta.resource_version,
            row=old.row if old is not None and node else -1,
            controller=None if node else _read_controller(meta),
            nominated="" if node else pod.status.nominated_node_name,
            preempts=spec.preemption_policy != names.PREEMPT_NEVER,
            evicted=_is_evicted(pod),
            # What a pod's spec says of storage cannot be changed.
            volumes=volumes.read_volumes(pod) if old is None else old.volumes,
            generation=meta.generation,
            member=member,
            owned=owned,
            run_seconds=run_seconds,
            checkpoint_seconds=checkpoint_seconds,
            priority_class=spec.priority_class_name if template.most else "",
            claims=read_claims(pod),
            allotted=old.allotted if old is not None and node and old.node == node else (),
            left_notes=() if node else _list_left(meta),
            names_claim=pod.status.extended_resource_claim_status is not None,
        )

    def _read_claim(
        self, pod: wire.Pod, template: templates.PodTemplate
    ) -> tuple[list[_Said], Mistake | None]:
        """Read what the annotations of a bound pod say that it holds, and what of them cannot be read."""
        claim: list[_Said] = []
        problem = None
        for part in template.list_by_family():
            for driver in self._devices.list_card_drivers(part.family):
                is_whole = True
                try:
                    slots = driver.read_claim(pod, [bool(ask.cards) for ask in part.most])
                except PartialClaim as error:
                    problem, slots, is_whole = error.mistake, error.slots, False
                except BadInput as error:
                    problem = error.mistake
                    continue
                if any(slots):
                    claim.append(_Said(part.family, Grant(driver.name, slots), is_whole))
        return claim, problem

    def read_success(self, pod: wire.Pod) -> Membership | None:
        """Read what a pod that has succeeded was in its group: its part and its rank. None for all other pods.

        A pod that is sent away may end well, too, and has not done its work then.
        """
        if pod.status.phase != "Succeeded" or pod.metadata.deletion_timestamp is not None:
            return None
        if pod.spec.scheduler_name not in self._schedulers:
            return None
        member, owned = self._read_membership(pod)
        says = member or owned
        if says is None or says.problem is not None:
            return None
        return Membership(says.group, says.part, says.index, scheduler=says.scheduler)

    def _read_membership(self, pod: wire.Pod) -> tuple[Membership | None, Membership | None]:
        """Read of which group a pod is, and of which group it is if its owner asks for it."""
        scheduler = pod.spec.scheduler_name or ""
        says = groups.read_membership(pod, self._group_kinds)
        owner = find_owner(pod) if pod.metadata.owner_references else None
        if says is not None:
            above = owner.group if owner is not None and owner.group != says.group else None
            return msgspec.structs.replace(says, scheduler=scheduler, owner=above), None
        if owner is None:
            return None, None
        owned = Membership(owner.group, owner.part, owner.index, scheduler=scheduler)
        return None, owned

    def _intern_template(self, pod: wire.Pod) -> templates.PodTemplate:
        key = hashlib.blake2b(
            templates.make_key(pod, self._devices.notes), digest_size=_KEY_BYTES
        ).digest()
        template = self._templates.get(key)
        if template is None or template.offered not in {0, self._offered.generation}:
            template = self._templates[key] = self._keep_offered(
                templates.make_template(pod, self._limits, self._devices)
            )
        return template

    def forget_templates(self) -> None:
        """Read each pod anew from now on: drivers read what pods ask in another way."""
        self._templates.clear()

    def _keep_held(
        self, pod: wire.Pod, template: templates.PodTemplate, old: PodRecord | None
    ) -> templates.PodTemplate:
        """Return the template of a pod on a node with what the pod asked of devices when it came there."""
        asks = templates.list_asks(template)
        if old is not None and old.node == pod.spec.node_name:
            before = templates.list_asks(old.template)
            found = held_asks.join_asks(self._devices, before, asks)
        else:
            found = held_asks.find_asks(self._devices, pod, asks)
        return self._give_asks(template, asks, found)

    def _raise_asks(
        self, template: templates.PodTemplate, said: Iterable[_Said]
    ) -> templates.PodTemplate:
        """Return the template of a pod on a node so that the pod may hold what its annotations say.

        Where not all can be read, what is held at most is a guess, which the requests bound.
        """
        asks = templates.list_asks(template)
        slots = [(one.family, one.grant.slots) for one in said if one.is_whole]
        return self._give_asks(template, asks, held_asks.raise_asks(asks, slots))

    def _give_asks(
        self, template: templates.PodTemplate, asks: held_asks.Asks, found: held_asks.Asks
    ) -> templates.PodTemplate:
        """Return the one template that is like this one, whose asks are ``asks``, and has those that were found."""
        if found == asks:
            return template
        key = template, found
        held = self._held.get(key)
        if held is None:
            held = self._held[key] = templates.give_asks(template, found)
        return held

    def _keep_offered(self, template: templates.PodTemplate) -> templates.PodTemplate:
        """Keep only the resources that some node offers, if a template asks for more than the limits allow.

        A kubelet runs a pod that asks for thousands of resources that no node knows, and each would be a word to
        keep. When a node offers one of them later, the pod is charged for it when it is seen or listed again.
        """
        amounts = template.requests.amounts
        if len(amounts) <= self._limits.resources:
            return template
        known = tuple(asked for asked in amounts if self._offered.find(asked[0]) >= 0)
        requests = template.requests._replace(amounts=known)
        return replace(template, requests=requests, offered=self._offered.generation)


def _limit_claims(
    said: Iterable[_Said], template: templates.PodTemplate, *, initialized: bool
) -> Grants:
    """Return what counts of what a pod's annotations say, see ``told_cards.limit_claim``."""
    most = {part.family: part.most for part in template.list_by_family()}
    limited = (
        (grant, told_cards.limit_claim(grant.slots, most[family], initialized=initialized))
        for family, grant, _ in said
    )
    return tuple(grant._replace(slots=slots) for grant, slots in limited if slots)


def _is_evicted(pod: wire.Pod) -> bool:
    """Whether a pod is being deleted because a scheduler makes room."""
    if pod.metadata.deletion_timestamp is None:
        return False
    for one in pod.status.conditions or ():
        if one.type == names.DISRUPTION_TARGET:
            return one.status == "True" and one.reason == names.PREEMPTED_BY_SCHEDULER
    return False


def _read_controller(meta: wire.Meta) -> tuple[str, str, str] | None:
    for one in meta.owner_references or ():
        if one.controller:
            return one.api_version, one.kind, one.name
    return None


def read_start(pod: wire.Pod) -> int:
    """Read when the kubelet took the pod up, in seconds since 1970; ``NOT_STARTED`` where the status does not say."""
    at = times.read_time(pod.status.start_time or "")
    return c.NOT_STARTED if at is None else at


def _list_left(meta: wire.Meta) -> tuple[str, ...]:
    notes = meta.annotations
    return tuple(key for key in names.LEFT_BEHIND if notes.get(key)) if notes else ()


def _has_initialized(pod: wire.Pod, template: templates.PodTemplate) -> bool:
    if not template.most or gpus.ContainerKind.INIT not in template.kinds:
        return False
    return any(
        condition.type == "Initialized" and condition.status == "True"
        for condition in pod.status.conditions or ()
    )
