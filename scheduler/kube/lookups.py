"""What the parts that write to the API server look up in the engine right before they write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.api import wire
from scheduler.api.admission.backends import Backend
from scheduler.api.door.decisions import Bind
from scheduler.config import Config
from scheduler.devices.admission.drafts import PodDraft
from scheduler.devices.answers import Drivers
from scheduler.engine.engine import Engine
from scheduler.engine.questions.claims import KnownResourceClaim
from scheduler.engine.questions.nodes import CardDrivers, KnownNode, SharedGpus
from scheduler.engine.questions.pods import BindObjection, PodVersion
from scheduler.engine.questions.space_quotas import SpaceQuotaExcess
from scheduler.engine.questions.volumes import KnownClaim, KnownVolume, MovedDrivers
from scheduler.engine.questions.waiting import LastingPlace, Place
from scheduler.kube.bind.claim_waits import ClaimLookups
from scheduler.kube.bind.volume_waits import ClusterLookups


class Lookups:
    """Short questions to the engine, as functions."""

    def __init__(self, engine: Engine, config: Config) -> None:
        self._engine, self._config = engine, config

    def get_version(self, uid: str) -> str:
        """Return the last version of a pod that was seen; empty if the pod is not known."""
        return self._engine.ask(PodVersion(uid))

    def find_objection(self, bind: Bind) -> str:
        """Return why a decision may no longer be carried out; empty if it may."""
        return self._engine.ask(BindObjection(bind))

    def find_place(self, uid: str) -> Place:
        """Find the place of a pod in the order of those that wait."""
        return self._engine.ask(LastingPlace(uid))

    def get_drivers(self) -> Drivers:
        """Return the drivers of cards by name."""
        return self._engine.ask(CardDrivers())

    def find_quota_excess(self, draft: PodDraft) -> str | None:
        """Say which quota of its namespace a pod exceeds that is to be created; None for none.

        Another thread calls it.
        """
        pod = draft.read_pod()
        return None if pod is None else self._engine.ask(SpaceQuotaExcess(pod)) or None

    def list_backends(self, cards: str, pod: wire.Pod | None) -> Sequence[Backend]:
        """List the ways in which nodes share GPUs, as ``SharedGpus``. Another thread calls it."""
        return self._engine.ask(SharedGpus(cards, pod))

    def get_labels(self, node: str) -> Mapping[str, str] | None:
        """Return the labels of a node; None if it does not exist."""
        facts = self._engine.ask(KnownNode(node))
        return facts.labels if facts is not None else None

    def get_volume_timeout(self, profile: str) -> float:
        """Return how long pods of a profile wait for their volumes, in seconds."""
        return self._config.profile(profile).placement.kube.volume_binding.timeout_seconds

    def make_claim_lookups(self) -> ClaimLookups:
        """Return the look-ups of the step that allocates ResourceClaims."""
        return ClaimLookups(lambda key: self._engine.ask(KnownResourceClaim(key)))

    def make_volume_lookups(self) -> ClusterLookups:
        """Return the look-ups of the step that binds volume claims."""
        ask = self._engine.ask
        return ClusterLookups(
            lambda key: ask(KnownClaim(key)),
            lambda name: ask(KnownVolume(name)),
            lambda node: ask(MovedDrivers(node)),
            self.get_labels,
            self.get_volume_timeout,
        )
