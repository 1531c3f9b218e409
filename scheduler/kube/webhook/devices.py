"""Reviews of pods with devices, in and out; what is decided about a pod is in ``devices/admission``."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus

import msgspec

from scheduler.api import kinds
from scheduler.api.admission.settings import AdmissionSettings, follow_devices
from scheduler.api.door.notes import DeviceMapRead
from scheduler.devices.admission import steps
from scheduler.devices.admission.steps import Allowed, ClusterFacts, Denied
from scheduler.kube.webhook import reviews
from scheduler.kube.webhook.reviews import Answer, Request, Review


class _PodRequest(Request):
    object: msgspec.Raw = msgspec.Raw()


_DECODER = msgspec.json.Decoder(Review[_PodRequest])


@dataclass(slots=True)
class DeviceAdmission:
    """By what pods with devices are admitted. The thread of the webhook reads it while the main loop may change it.

    Attributes:
        settings: what the operator has set; replaced as a whole.
        facts: what is known of the cluster. Another thread calls it, so it only reads.
    """

    settings: AdmissionSettings
    facts: ClusterFacts = field(default_factory=ClusterFacts)

    def follow(self, note: DeviceMapRead) -> None:
        """Admit pods by what devices are configured with from now on."""
        if note.taken is not None:
            self.settings = follow_devices(self.settings, note.taken)


def answer_pod(body: bytes, admission: DeviceAdmission) -> Answer:
    """Answer whether a pod may be created, and what it gets.

    Raises:
        NotReview: the body is no review.
    """
    request = reviews.decode(body, _DECODER)
    is_pod = (request.kind.group, request.kind.kind) == (kinds.PODS.group, kinds.PODS.kind)
    if not is_pod or request.sub_resource or bytes(request.object) in (b"", b"null"):
        return reviews.write_allowed(request, [])
    verdict = steps.review_pod(
        request.object, request.namespace, admission.settings, admission.facts
    )
    match verdict:
        case Allowed(patch):
            return reviews.write_allowed(request, patch)
        case Denied(message):
            status, reason = HTTPStatus.FORBIDDEN, "Forbidden"
        case steps.Error(message, is_unreadable=True):
            status, reason = HTTPStatus.BAD_REQUEST, "BadRequest"
        case steps.Error(message):
            # The source of these steps has this code for an amount that cannot be.
            status, reason = HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError"
    return reviews.write_refused(request, kinds.PODS, status, reason, message)
