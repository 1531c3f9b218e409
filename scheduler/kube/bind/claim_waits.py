"""Jobs whose claims have devices that must get ready first: a job waits until all are ready, or until one will not be.

Nothing here waits, writes or looks at a clock. A call says what happened, and returns what is to be done.

Source: kube-scheduler 1.37.1, dynamicresources.go, PreBind and isClaimReadyForBinding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from scheduler.api import kinds
from scheduler.api.claims.answers import ClaimKey
from scheduler.kube.bind.jobs import GiveBack, Job, Start
from scheduler.state.claims.objects import Claim

# kube-scheduler's ``bindingTimeout``.
_SECONDS = 600.0


class ClaimLookups(NamedTuple):
    """Look-ups in the engine; ``get_claim``: a claim as the API server has it; None if it does not exist."""

    get_claim: Callable[[ClaimKey], Claim | None]


class ReadyWaits:
    """The jobs that wait for the devices of their claims."""

    def __init__(self, known: ClaimLookups) -> None:
        self._known = known
        self._until: dict[Job, float] = {}
        self._by_claim: defaultdict[ClaimKey, dict[Job, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._until)

    def begin_waiting(self, job: Job, now: float) -> list[Start | GiveBack]:
        """Let a job wait: all that can be written for its claims is written."""
        self._until[job] = now + _SECONDS
        for key in _list_objects(job):
            self._by_claim[key][job] = None
        return self._look_at([job])

    def see_object(self, kind: str, namespace: str, name: str) -> list[Start | GiveBack]:
        """Look at the jobs that wait for a claim, which is new, changed or gone."""
        if kind != kinds.RESOURCE_CLAIMS.name:
            return []
        return self._look_at(self._by_claim.get((namespace, name), ()))

    def note_node_gone(self, node: str) -> list[Start | GiveBack]:
        """Give back the jobs of a node that is gone."""
        gone = [job for job in self._until if job.node == node]
        return [self._give_back(job, f'node "{node}" is gone') for job in gone]

    def drop_job(self, job: Job) -> bool:
        """Let a job wait no more; return whether it waited."""
        has_waited = job in self._until
        if has_waited:
            self._forget(job)
        return has_waited

    def give_up_waiting(self, why: str) -> list[Start | GiveBack]:
        """Give back all jobs that wait."""
        return [self._give_back(job, why) for job in list(self._until)]

    def pass_time(self, now: float) -> Iterator[GiveBack]:
        """Give back the jobs whose time is over, now that the loop's time is ``now``."""
        for job in [job for job, until in self._until.items() if now >= until]:
            yield self._give_back(job, "device binding timeout")

    def _look_at(self, jobs: Iterable[Job]) -> list[Start | GiveBack]:
        effects: list[Start | GiveBack] = []
        for job in list(jobs):
            claims = [self._known.get_claim(one.key) for one in job.bind.allotted]
            if any(one is None or one.given is None for one in claims):
                # What was written is not seen yet, or is gone again; then the time will be over.
                continue
            failure = next((one.failure for one in claims if one is not None and one.failure), "")
            if failure:
                effects.append(self._give_back(job, failure))
            elif not any(one is not None and one.is_late for one in claims):
                self._forget(job)
                effects.append(Start(job))
        return effects

    def _give_back(self, job: Job, why: str) -> GiveBack:
        self._forget(job)
        return GiveBack(job, why)

    def _forget(self, job: Job) -> None:
        del self._until[job]
        for key in _list_objects(job):
            jobs = self._by_claim.get(key, {})
            jobs.pop(job, None)
            if not jobs:
                self._by_claim.pop(key, None)


def _list_objects(job: Job) -> list[ClaimKey]:
    """List namespace and name of the claims of a job."""
    return [job.made_claims.get(one.key, one.key) for one in job.bind.allotted]
