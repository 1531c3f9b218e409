"""Jobs whose volume claims are being bound: a job waits until all are bound, or until one will not be bound.

    begin ─▶ waiting ─ all bound ─▶ Start
                └─ reset, refused, gone, too late ─▶ GiveBack

Nothing here waits, writes or looks at a clock. A call says what happened, and returns what is to be done.

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
    """Look-ups in the engine.

    Attributes:
        get_claim: a volume claim as the API server has it, not as decided; None if it does not exist.
        get_volume: a volume by its name, likewise.
        get_moved: the volume plugins that a CSI driver replaces on a node.
        get_labels: the labels of a node by its name; None if it does not exist.
        get_timeout: how long a job of a profile waits, in seconds; kube-scheduler's ``bindTimeoutSeconds``.
    """

    get_claim: Callable[[ClaimKey], Claim | None]
    get_volume: Callable[[str], Volume | None]
    get_moved: Callable[[str], AbstractSet[str]]
    get_labels: Callable[[str], Labels | None]
    get_timeout: Callable[[str], float]


class GivenClaim(NamedTuple):
    """What a claim was given.

    Attributes:
        volume: the volume; empty if one is to be made.
        version: the version of the volume, or without a volume of the claim, after the write.
    """

    claim: ClaimKey
    volume: str
    version: str


class _Problem(NamedTuple):
    """Why a binding has come to nothing."""

    text: str


class ClaimWaits:
    """The jobs that wait for their volume claims."""

    def __init__(self, known: ClusterLookups) -> None:
        self._known = known
        self._given: dict[Job, tuple[tuple[GivenClaim, ...], float]] = {}
        self._by_claim: defaultdict[ClaimKey, dict[Job, None]] = defaultdict(dict)
        self._by_volume: defaultdict[str, dict[Job, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._given)

    def begin_waiting(
        self, job: Job, given: tuple[GivenClaim, ...], now: float
    ) -> list[Start | GiveBack]:
        """Let a job wait: all that can be written for its claims is written."""
        self._given[job] = given, now + self._known.get_timeout(job.pod.profile)
        for one in given:
            self._by_claim[one.claim][job] = None
            if one.volume:
                self._by_volume[one.volume][job] = None
        return self._look_at([job])

    def see_object(self, kind: str, namespace: str, name: str) -> list[Start | GiveBack]:
        """Look at the jobs that wait for an object, which is new, changed or gone."""
        if not self._given:
            return []
        if kind == kinds.CLAIMS.name:
            return self._look_at(self._by_claim.get((namespace, name), ()))
        if kind != kinds.VOLUMES.name:
            return []
        volume = self._known.get_volume(name)
        of_claim = self._by_claim.get(volume.claim_key or ("", ""), ()) if volume else ()
        return self._look_at({**dict.fromkeys(of_claim), **self._by_volume.get(name, {})})

    def note_node_gone(self, node: str) -> list[Start | GiveBack]:
        """Give back the jobs of a node that is gone: nothing can be bound for the node."""
        return self._look_at([job for job in self._given if job.node == node])

    def drop_job(self, job: Job) -> bool:
        """Let a job wait no more; return whether it waited."""
        has_waited = job in self._given
        if has_waited:
            self._forget(job)
        return has_waited

    def give_up_waiting(self, why: str) -> list[Start | GiveBack]:
        """Give back all jobs that wait."""
        return [self._give_back_job(job, why) for job in list(self._given)]

    def pass_time(self, now: float) -> Iterator[GiveBack]:
        """Give back the jobs whose time is over, now that the loop's time is ``now``."""
        late = [job for job, (_, until) in self._given.items() if now >= until]
        for job in late:
            yield self._give_back_job(job, "binding volumes: not all are bound in time")

    def _look_at(self, jobs: Iterable[Job]) -> list[Start | GiveBack]:
        effects: list[Start | GiveBack] = []
        for job in list(jobs):
            labels = self._known.get_labels(job.node)
            states: list[bool | _Problem] = [_Problem(f'node "{job.node}" is gone')]
            if labels is not None:
                states = [self._get_state(job.node, labels, one) for one in self._given[job][0]]
            problem = next((one for one in states if isinstance(one, _Problem)), None)
            if problem is not None:
                effects.append(self._give_back_job(job, f"binding volumes: {problem.text}"))
            elif all(states):
                self._forget(job)
                effects.append(Start(job))
        return effects

    def _get_state(self, node: str, labels: Labels, given: GivenClaim) -> bool | _Problem:
        """Return whether a claim is bound, or why it will not be."""
        claim = self._known.get_claim(given.claim)
        if claim is None:
            return _Problem(f'PVC "{given.claim[1]}" is gone')
        if given.volume:
            return self._get_state_of_given(labels, node, claim, given)
        if _is_older(claim.version, given.version):
            return False
        if claim.selected != node:
            # The provisioner has said that it cannot make the volume there.
            return _Problem(f'provisioning failed for PVC "{given.claim[1]}"')
        volume = self._known.get_volume(claim.volume)
        if volume is not None and not self._can_use(node, labels, volume):
            return _make_elsewhere_problem(volume, node)
        return volume is not None and claim.is_bound

    def _get_state_of_given(
        self, labels: Labels, node: str, claim: Claim, given: GivenClaim
    ) -> bool | _Problem:
        volume = self._known.get_volume(given.volume)
        if volume is None:
            return _Problem(f'PV "{given.volume}" is gone')
        if _is_older(volume.version, given.version):
            return False
        if not self._can_use(node, labels, volume):
            return _make_elsewhere_problem(volume, node)
        if volume.claim is None or not volume.claim[2]:
            return _Problem(f'ClaimRef got reset for pv "{volume.name}"')
        return claim.is_bound

    def _can_use(self, node: str, labels: Labels, volume: Volume) -> bool:
        is_moved = volume.plugin in self._known.get_moved(node)
        return choosing.includes_node(
            volume.moved_affinity if is_moved else volume.affinity, labels
        )

    def _give_back_job(self, job: Job, why: str) -> GiveBack:
        self._forget(job)
        return GiveBack(job, why)

    def _forget(self, job: Job) -> None:
        given, _ = self._given.pop(job)
        for one in given:
            _drop_job(self._by_claim, one.claim, job)
            _drop_job(self._by_volume, one.volume, job)


def _make_elsewhere_problem(volume: Volume, node: str) -> _Problem:
    return _Problem(f'pv "{volume.name}" node affinity doesn\'t match node "{node}"')


def _is_older(seen: str, written: str) -> bool:
    """Whether the version that was seen is older than a write; versions are numbers that rise."""
    if seen.isdecimal() and written.isdecimal():
        return int(seen) < int(written)
    return seen != written


def _drop_job(jobs_by_key: defaultdict[Any, dict[Job, None]], key: Any, job: Job) -> None:
    jobs = jobs_by_key.get(key)
    if jobs is not None:
        jobs.pop(job, None)
        if not jobs:
            del jobs_by_key[key]
