"""From a pod object to the record that the cluster keeps of it."""

from __future__ import annotations

from scheduler.api import gpus, hami, names, templates, wire
from scheduler.errors import BadInput
from scheduler.state import claims
from scheduler.state.pods import Life, PodRecord

# Distinct templates remembered by key. A cluster has hundreds; one that stamps a nonce into every
# pod spec must not grow the process for ever.
TEMPLATES_MAX = 20_000


class Records:
    """Makes records; interns templates and numbers pods as they arrive."""

    def __init__(self, scheduler_name: str) -> None:
        self._scheduler_name = scheduler_name
        self._templates: dict[bytes, templates.PodTemplate] = {}
        self._arrivals = 0

    def of(self, pod: wire.Pod, old: PodRecord | None) -> PodRecord:
        """The record of a pod, bound or pending; ``old`` is the one before, if there is one.

        The cards of a bound pod are those its annotation tells, whatever node that one names: it runs
        where it runs. Of a pod that asks none it is not even read. Never raises: what cannot be read
        stands in ``problem``.
        """
        meta, spec = pod.metadata, pod.spec
        template = self._template(pod)
        node = spec.node_name or ""
        problem = str(template.problem) if template.problem and not node else ""
        asks = claims.staying(template.most) if _init_done(pod, template) else template.most
        claim: claims.Slots = ()
        if node and asks:
            text = (meta.annotations or {}).get(names.HAMI_ALLOCATED, "")
            try:
                claim = claims.allowed(hami.decode_devices(text), asks)
            except BadInput as error:
                problem = str(error)
        if old is None:
            self._arrivals += 1
        return PodRecord(
            uid=meta.uid,
            namespace=meta.namespace,
            name=meta.name,
            node=node,
            life=Life.BOUND if node else Life.PENDING,
            template=template,
            asks=asks,
            claim=claim,
            priority=spec.priority,
            ours=spec.scheduler_name == self._scheduler_name,
            gated=bool(spec.scheduling_gates),
            deleting=meta.deletion_timestamp is not None,
            labels=meta.labels,
            order=self._arrivals if old is None else old.order,
            created=meta.creation_timestamp,
            problem=problem,
        )

    def _template(self, pod: wire.Pod) -> templates.PodTemplate:
        key = templates.key(pod)
        template = self._templates.get(key)
        if template is None:
            if len(self._templates) >= TEMPLATES_MAX:
                self._templates.clear()
            template = self._templates[key] = templates.of_pod(pod)
        return template


def _init_done(pod: wire.Pod, template: templates.PodTemplate) -> bool:
    if gpus.Kind.INIT not in template.kinds:
        return False
    return any(
        condition.type == "Initialized" and condition.status == "True"
        for condition in pod.status.conditions or ()
    )
