"""Stand-ins: pods that do not exist yet, on the nodes that a workload has been given.

A suspended job has no pods. Its workload is placed with stand-ins, made from the job's templates, and once it is admitted
they hold its room. A pod of the job that comes takes the room of one of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from scheduler.api import wire
from scheduler.state.charging.roster import Roster
from scheduler.state.claims.store import Claims
from scheduler.state.pods import Life, PodRecord
from scheduler.state.records import Records


class StandIns:
    """The stand-ins of all workloads, by the key of the workload and the name of the pod set."""

    def __init__(self, roster: Roster, records: Records, claims: Claims) -> None:
        self._roster, self._records, self._claims = roster, records, claims
        # Their uids, as keys: one of very many is removed at once.
        self._of: dict[str, dict[str, dict[str, None]]] = {}
        self._owner: dict[str, str] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._owner

    def __len__(self) -> int:
        return len(self._owner)

    def add(self, workload: str, pod_set: str, pods: Sequence[wire.Pod]) -> list[PodRecord]:
        """Add stand-ins that have no node, and return their records."""
        found = []
        for pod in pods:
            record = self._records.make_record(pod, None)
            self._roster.keep(record)
            self._claims.change_pod(None, record)
            self._of.setdefault(workload, {}).setdefault(pod_set, {})[record.uid] = None
            self._owner[record.uid] = workload
            found.append(record)
        return found

    def find_workload(self, uid: str) -> str:
        """Return the workload of a stand-in; empty for a pod that is none."""
        return self._owner.get(uid, "")

    def list_of(self, workload: str) -> list[PodRecord]:
        """List the stand-ins of a workload."""
        uids = (uid for some in self._of.get(workload, {}).values() for uid in some)
        return [self._roster.pods[uid] for uid in uids]

    def list_sets(self, workload: str) -> Mapping[str, Collection[str]]:
        """Return the uids of the stand-ins of a workload by pod set, those of the lowest ranks first."""
        return self._of.get(workload, {})

    def list_workloads(self) -> Iterator[str]:
        """List the workloads that have stand-ins."""
        return iter(list(self._of))

    def hand_over(self, workload: str, to: str) -> None:
        """Let another workload have the stand-ins of a workload."""
        for name, uids in self._of.pop(workload, {}).items():
            self._of.setdefault(to, {}).setdefault(name, {}).update(uids)
            self._owner.update(dict.fromkeys(uids, to))

    def drop(self, uid: str) -> None:
        """Remove a stand-in, and free its room."""
        workload = self._owner.pop(uid)
        sets = self._of[workload]
        for name in [name for name, uids in sets.items() if uid in uids]:
            del sets[name][uid]
            if not sets[name]:
                del sets[name]
        if not sets:
            del self._of[workload]
        pod = self._roster.pods[uid]
        if pod.life == Life.ASSUMED:
            self._roster.detach(pod)
        self._roster.drop(uid)
        self._claims.change_pod(pod, None)

    def drop_all(self, workload: str) -> None:
        """Remove all stand-ins of a workload."""
        for pod in self.list_of(workload):
            self.drop(pod.uid)
