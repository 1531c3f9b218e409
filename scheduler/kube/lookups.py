"""What parts that write to the API server look up in the engine right before."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.api.door.decisions import Bind
from scheduler.config import Config
from scheduler.engine.engine import Engine
from scheduler.engine.questions.nodes import KnownNode
from scheduler.engine.questions.pods import BindObjection, PodVersion
from scheduler.engine.questions.volumes import KnownClaim, KnownVolume, MovedDrivers
from scheduler.kube.bind.volume_waits import ClusterLookups


class Lookups:
    """Short questions, with their answers as functions."""

    def __init__(self, engine: Engine, config: Config) -> None:
        self._engine, self._config = engine, config

    def get_version(self, uid: str) -> str:
        """The last version seen of a pod, empty when it is not known."""
        return self._engine.ask(PodVersion(uid))

    def find_objection(self, bind: Bind) -> str:
        """Why a decision may no longer be carried out, empty when it may."""
        return self._engine.ask(BindObjection(bind))

    def get_labels(self, node: str) -> Mapping[str, str] | None:
        """The labels of a node, None when it is not there."""
        facts = self._engine.ask(KnownNode(node))
        return facts.labels if facts is not None else None

    def get_volume_timeout(self, profile: str) -> float:
        """How long pods of a profile wait for their volumes, in seconds."""
        return self._config.profile(profile).placement.kube.volume_binding.timeout_seconds

    def make_volume_lookups(self) -> ClusterLookups:
        """What volume claims look up."""
        ask = self._engine.ask
        return ClusterLookups(
            lambda key: ask(KnownClaim(key)),
            lambda name: ask(KnownVolume(name)),
            lambda node: ask(MovedDrivers(node)),
            self.get_labels,
            self.get_volume_timeout,
        )
