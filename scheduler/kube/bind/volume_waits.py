"""Jobs whose claims are being bound: each waits until the watch says that all are, or that one will not be.

    begun ─▶ waiting ─ all bound ─▶ Start
                └─ reset, refused, gone, too late ─▶ GiveBack

Nothing here waits, writes or looks at a clock: what happened comes in as a call, what is to be done comes out.

Source: kube-scheduler's volumebinding/binder.go, checkBindings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from scheduler.api import kinds
from scheduler.api.selectors import Labels
from scheduler.kube.bind.jobs import GiveBack, Job, Start
from scheduler.plugins.volumes import choosing
from scheduler.state.volumes.objects import Claim, ClaimKey, Volume


class ClusterLookups(NamedTuple):
    """What is known of the cluster.

    Attributes:
        claim: a volume claim, as told and not as decided; None where it is not there.
        volume: a volume by its name, likewise.
        moved: the plugins whose volumes a CSI driver serves on a node instead.
        labels: of a node by its name, None where it is not there.
        patience: how long a job of a profile waits, in seconds; kube-scheduler's ``bindTimeoutSeconds``.
    """

    claim: Callable[[ClaimKey], Claim | None]
    volume: Callable[[str], Volume | None]
    moved: Callable[[str], AbstractSet[str]]
    labels: Callable[[str], Labels | None]
    patience: Callable[[str], float]


class GivenClaim(NamedTuple):
    """What a claim was given.

    Attributes:
        volume: empty where one is to be made.
        version: of the volume, or where none is given of the claim, once that was written.
    """

    claim: ClaimKey
    volume: str
    version: str


class _Problem(NamedTuple):
    """Why a binding has come to nothing."""

    text: str


class Claims:
    """The jobs that wait for their claims."""

    def __init__(self, known: ClusterLookups) -> None:
        self._known = known
        self._asked: dict[Job, tuple[tuple[GivenClaim, ...], float]] = {}
        self._by_claim: defaultdict[ClaimKey, dict[Job, None]] = defaultdict(dict)
        self._by_volume: defaultdict[str, dict[Job, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._asked)

    def begun(self, job: Job, asked: tuple[GivenClaim, ...], now: float) -> list[Start | GiveBack]:
        """All that can be written for a job is written."""
        self._asked[job] = asked, now + self._known.patience(job.pod.profile)
        for one in asked:
            self._by_claim[one.claim][job] = None
            if one.volume:
                self._by_volume[one.volume][job] = None
        return self._look([job])

    def seen(self, kind: str, namespace: str, name: str) -> list[Start | GiveBack]:
        """An object is there, another, or gone."""
        if not self._asked:
            return []
        if kind == kinds.CLAIMS.name:
            return self._look(self._by_claim.get((namespace, name), ()))
        if kind != kinds.VOLUMES.name:
            return []
        volume = self._known.volume(name)
        of_claim = self._by_claim.get(volume.claim_key or ("", ""), ()) if volume else ()
        return self._look({**dict.fromkeys(of_claim), **self._by_volume.get(name, {})})

    def node_gone(self, node: str) -> list[Start | GiveBack]:
        """Nothing can be bound for a node that is not there."""
        return self._look([job for job in self._asked if job.node == node])

    def drop(self, job: Job) -> bool:
        """A job waits no more; whether it did."""
        waited = job in self._asked
        if waited:
            self._forget(job)
        return waited

    def given_up(self, why: str) -> list[Start | GiveBack]:
        """Nothing that waits shall be carried out."""
        return [self._give_back(job, why) for job in list(self._asked)]

    def passed(self, now: float) -> Iterator[GiveBack]:
        """It is ``now``, by the loop's time."""
        late = [job for job, (_, until) in self._asked.items() if now >= until]
        for job in late:
            yield self._give_back(job, "binding volumes: not all are bound in time")

    def _look(self, jobs: Iterable[Job]) -> list[Start | GiveBack]:
        effects: list[Start | GiveBack] = []
        for job in list(jobs):
            labels = self._known.labels(job.node)
            states: list[bool | _Problem] = [_Problem(f'node "{job.node}" is gone')]
            if labels is not None:
                states = [self._state(job.node, labels, one) for one in self._asked[job][0]]
            problem = next((one for one in states if isinstance(one, _Problem)), None)
            if problem is not None:
                effects.append(self._give_back(job, f"binding volumes: {problem.text}"))
            elif all(states):
                self._forget(job)
                effects.append(Start(job))
        return effects

    def _state(self, node: str, labels: Labels, asked: GivenClaim) -> bool | _Problem:
        """Whether a claim is bound, or why it will not be."""
        claim = self._known.claim(asked.claim)
        if claim is None:
            return _Problem(f'PVC "{asked.claim[1]}" is gone')
        if asked.volume:
            return self._state_of_given(labels, node, claim, asked)
        if _is_older(claim.version, asked.version):
            return False
        if claim.selected != node:
            # Who was to make the volume has said that it cannot be made there.
            return _Problem(f'provisioning failed for PVC "{asked.claim[1]}"')
        volume = self._known.volume(claim.volume)
        if volume is not None and not self._can_use(node, labels, volume):
            return _elsewhere(volume, node)
        return volume is not None and claim.is_bound

    def _state_of_given(
        self, labels: Labels, node: str, claim: Claim, asked: GivenClaim
    ) -> bool | _Problem:
        volume = self._known.volume(asked.volume)
        if volume is None:
            return _Problem(f'PV "{asked.volume}" is gone')
        if _is_older(volume.version, asked.version):
            return False
        if not self._can_use(node, labels, volume):
            return _elsewhere(volume, node)
        if volume.claim is None or not volume.claim[2]:
            return _Problem(f'ClaimRef got reset for pv "{volume.name}"')
        return claim.is_bound

    def _can_use(self, node: str, labels: Labels, volume: Volume) -> bool:
        is_moved = volume.plugin in self._known.moved(node)
        return choosing.includes_node(
            volume.moved_affinity if is_moved else volume.affinity, labels
        )

    def _give_back(self, job: Job, why: str) -> GiveBack:
        self._forget(job)
        return GiveBack(job, why)

    def _forget(self, job: Job) -> None:
        asked, _ = self._asked.pop(job)
        for one in asked:
            _drop(self._by_claim, one.claim, job)
            _drop(self._by_volume, one.volume, job)


def _elsewhere(volume: Volume, node: str) -> _Problem:
    return _Problem(f'pv "{volume.name}" node affinity doesn\'t match node "{node}"')


def _is_older(seen: str, written: str) -> bool:
    """Whether what was seen is of before a write; versions are numbers that rise."""
    if seen.isdecimal() and written.isdecimal():
        return int(seen) < int(written)
    return seen != written


def _drop(of: defaultdict[Any, dict[Job, None]], key: Any, job: Job) -> None:
    there = of.get(key)
    if there is not None:
        there.pop(job, None)
        if not there:
            del of[key]
