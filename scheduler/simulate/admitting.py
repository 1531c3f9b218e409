"""What the webhook for pods with devices makes of pods that are not in a cluster yet, where they request a share of a GPU.

All else that the webhook adds, the engine reads from the pods as they are.
"""

from __future__ import annotations

import msgspec

from scheduler.api import names, wire
from scheduler.api.admission.settings import AdmissionSettings
from scheduler.devices.admission.drafts import PodDraft
from scheduler.devices.admission.steps import ClusterFacts, change_pod
from scheduler.engine.engine import Engine
from scheduler.engine.questions.nodes import SharedGpus
from scheduler.errors import Mistake
from scheduler.simulate.reading.inventory import Inventory, Unread
from scheduler.simulate.reading.objects import NOT_YET

_WORDS = frozenset({names.SHARE_MEMORY, names.SHARE_CORES})


def admit_pods(engine: Engine, inventory: Inventory, settings: AdmissionSettings) -> None:
    """Write requests for shares as requests to what the nodes have that the engine knows; leave out pods that are refused."""
    facts = ClusterFacts(list_backends=lambda cards, pod: engine.ask(SharedGpus(cards, pod)))
    admitted = []
    for pod in inventory.pods:
        if not _requests_share(pod):
            admitted.append(pod)
            continue
        draft = PodDraft(msgspec.json.encode(pod), pod.metadata.namespace)
        refusal = change_pod(draft, settings, facts)
        if refusal is None:
            admitted.append(draft.read_pod() or pod)
            continue
        mistake = Mistake("", refusal.message)
        inventory.keep_problem(inventory.make_problem(pod.metadata.uid, mistake))
        at = inventory.positions[pod.metadata.uid]
        unread = Unread(at, pod.metadata.namespace, pod.metadata.name, mistake)
        inventory.unread.append(unread)
        inventory.positions[unread.uid] = at
    inventory.pods[:] = admitted
    inventory.refuse_mistakes()


def _requests_share(pod: wire.Pod) -> bool:
    """Whether a pod is to be created, and requests a share in neutral words or in KAI's."""
    is_there = pod.metadata.creation_timestamp != NOT_YET or pod.spec.node_name
    if is_there or pod.oversized is not None:
        return False
    if not names.KAI_SHARES.isdisjoint(pod.metadata.annotations or ()):
        return True
    containers = [*(pod.spec.init_containers or ()), *pod.spec.containers]
    found = (one.resources for one in containers if one.resources is not None)
    return any(not _WORDS.isdisjoint([*(one.limits or ()), *(one.requests or ())]) for one in found)
