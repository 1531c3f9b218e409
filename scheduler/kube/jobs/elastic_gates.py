"""Takes the gate from pods of jobs that change their size while they run, as far as there is quota for these pods.

Source: Kueue (2026-08), ``pkg/controller/elasticjobs/elastic_job_ungater.go``.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from scheduler.api import kinds, kueue, names, times, wire
from scheduler.api.jobs import templates, workloads
from scheduler.api.jobs.parts import Json, read_list
from scheduler.api.jobs.templates import Addition, CannotStart, write_changes
from scheduler.api.queues.chains import find_chain, write_chain
from scheduler.api.queues.words import ADMITTED, EVICTED, FINISHED
from scheduler.kube.client import ApiClient
from scheduler.kube.jobs import known
from scheduler.kube.jobs.deeds import Refusal
from scheduler.kube.jobs.looks import Looks, Named
from scheduler.kube.jobs.ties import JobTies
from scheduler.kube.jobs.writing import JobWrites, read_if_there

# So many pods are written at once.
_AT_ONCE = 16
_ENDED = frozenset({"Succeeded", "Failed"})


class _Pod(NamedTuple):
    """A pod of a chain of slices that has not ended."""

    meta: wire.Meta
    chain: str
    pod_set: str
    is_gated: bool


class _Slice(NamedTuple):
    """A slice: how many pods of each pod set have quota once it is admitted.

    Attributes:
        order: the time and the uid by which the newest one is found.
        replaces: the key of the slice that it replaces; empty for none.
        may_run: whether it is admitted, and is to stay.
        checks: the name and the ``podSetUpdates`` of each of its admission checks that has any.
    """

    chain: str
    order: tuple[float, str]
    replaces: str
    counts: Mapping[str, int]
    may_run: bool
    checks: Sequence[tuple[str, Sequence[Json]]]


class ElasticGates:
    """The pods of such jobs, and the slices of their workloads, by chain: the namespace and name of the first slice.

    Attributes:
        looks: looks at chains.
    """

    def __init__(self, api: ApiClient, ties: JobTies, writes: JobWrites) -> None:
        self._api, self._ties, self._writes = api, ties, writes
        # By uid.
        self._pods: dict[str, _Pod] = {}
        # By chain: the uids of its pods, and how many of each pod set have the gate, and have it no longer.
        self._of_chain: dict[str, set[str]] = {}
        self._counts: dict[str, Counter[tuple[str, bool]]] = {}
        # By chain and key.
        self._slices: dict[str, dict[str, _Slice]] = {}
        self._chains: dict[str, str] = {}
        self.looks: Looks[str] = Looks(self, ties.reporter)

    def see_pod(self, found: wire.Pod) -> None:
        """Take over what a watch says of a pod."""
        meta, gates = found.metadata, found.spec.scheduling_gates or ()
        texts, labels = meta.annotations or {}, meta.labels or {}
        is_gated = any(one.name == names.KUEUE_ELASTIC for one in gates)
        # A pod that Kueue has made may name its workload alone.
        name = texts.get(names.KUEUE_CHAIN) or (texts.get(names.KUEUE_WORKLOAD) if is_gated else "")
        self.drop_pod(meta.uid)
        if not name or found.status.phase in _ENDED:
            return
        chain = f"{meta.namespace}/{write_chain(meta, name)}"
        pod_set = labels.get(names.KUEUE_POD_SET, "")
        self._pods[meta.uid] = _Pod(known.pick_meta(meta), chain, pod_set, is_gated)
        self._of_chain.setdefault(chain, set()).add(meta.uid)
        self._counts.setdefault(chain, Counter())[pod_set, is_gated] += 1
        self.looks.note(chain)

    def drop_pod(self, uid: str) -> None:
        """Note that a pod is gone."""
        found = self._pods.pop(uid, None)
        if found is None:
            return
        of_chain = self._of_chain[found.chain]
        of_chain.discard(uid)
        self._counts[found.chain][found.pod_set, found.is_gated] -= 1
        if not of_chain:
            del self._of_chain[found.chain], self._counts[found.chain]
        self.looks.note(found.chain)

    def see_workload(self, found: kueue.Workload) -> None:
        """Take over what a watch says of a workload."""
        one, meta = known.read_workload(found), found.metadata
        self.drop_workload(one.key)
        if not one.is_elastic or FINISHED in one.true:
            return
        chain = self._chains[one.key] = find_chain(meta)
        created = float(times.read_time(meta.creation_timestamp) or 0)
        counts = {each.name or "main": each.count for each in found.spec.pod_sets or ()}
        may_run = ADMITTED in one.true and EVICTED not in one.true and one.has_quota
        replaces = (meta.annotations or {}).get(names.KUEUE_REPLACES, "")
        checks = [
            (check.name, check.pod_set_updates)
            for check in found.status.admission_checks or ()
            if check.pod_set_updates
        ]
        made = _Slice(chain, (created, one.uid), replaces, counts, may_run, checks)
        self._slices.setdefault(chain, {})[one.key] = made
        self.looks.note(chain)

    def drop_workload(self, key: str) -> None:
        """Note that a workload is gone."""
        chain = self._chains.pop(key, "")
        found = self._slices.get(chain, {})
        found.pop(key, None)
        if chain and not found:
            del self._slices[chain]
        if chain:
            self.looks.note(chain)

    # The subject of looks.

    def list_keys(self) -> Iterable[str]:
        """List the chains that have pods."""
        return self._of_chain

    def needs_look(self, key: str) -> bool:
        """Whether pods of a chain wait for which there is quota."""
        counts = self._counts.get(key, Counter())
        return any(
            counts[pod_set, True] and quota > counts[pod_set, False]
            for pod_set, quota in self._list_quota(key).items()
        )

    def find_object(self, key: str) -> Named | None:
        """Find the kind and the metadata of a pod of a chain: the first one that waits, if any does."""
        pods = (self._pods[uid] for uid in self._of_chain.get(key, ()))
        found = min(pods, key=lambda one: (not one.is_gated, one.meta.name), default=None)
        return (kinds.PODS, found.meta) if found is not None else None

    def _list_quota(self, chain: str) -> Mapping[str, int]:
        """Return for how many pods of each pod set a chain has quota."""
        running = self._find_running(chain)
        return running.counts if running is not None else {}

    def _find_running(self, chain: str) -> _Slice | None:
        """Find the slice of a chain with whose quota its pods run."""
        slices = {key: one for key, one in self._slices.get(chain, {}).items() if one.may_run}
        # Of a slice that was just replaced it is not said at once that it is finished.
        replaced = {one.replaces for one in slices.values()}
        running = [one for key, one in slices.items() if key not in replaced]
        return max(running, key=lambda one: one.order, default=None)

    def _list_free(self, chain: str) -> list[str]:
        """List the uids of the pods that may go without their gate: of each pod set as many as have quota."""
        quota, counts = self._list_quota(chain), self._counts.get(chain, Counter())
        left = Counter({name: n - counts[name, False] for name, n in quota.items()})
        pods = ((uid, self._pods[uid]) for uid in self._of_chain.get(chain, ()))
        waiting = ((one.meta.name, uid, one.pod_set) for uid, one in pods if one.is_gated)
        found = []
        for _, uid, pod_set in sorted(waiting):
            if left[pod_set] > 0:
                left[pod_set] -= 1
                found.append(uid)
        return found

    async def look_at(self, key: str) -> bool:
        """Take the gate from the pods of a chain for which there is quota.

        Raises:
            ApiError: the API server refuses.
            Refusal: a pod contradicts what admission checks add to it, and keeps its gate.
        """
        free, refused = self._list_free(key), []
        for start in range(0, len(free), _AT_ONCE):
            some = (self._take_gate(uid) for uid in free[start : start + _AT_ONCE])
            for result in await asyncio.gather(*some, return_exceptions=True):
                if isinstance(result, Refusal):
                    refused.append(result)
                elif isinstance(result, BaseException):
                    raise result
        if refused:
            raise refused[0]
        return False

    async def _take_gate(self, uid: str) -> None:
        """Take the gate from a pod, and add what the admission checks of its slice add.

        Raises:
            ApiError: the API server refuses.
            Refusal: the pod contradicts what admission checks add.
        """
        found = self._pods.get(uid)
        if found is None or not self._ties.may_write():
            return
        path = kinds.PODS.find_path(found.meta.name, found.meta.namespace)
        pod = await read_if_there(self._api, path)
        running = self._find_running(found.chain)
        if pod is None or pod["metadata"]["uid"] != uid or running is None:
            return
        gates = read_list(pod, "spec", "schedulingGates")
        left = [one for one in gates if one.get("name") != names.KUEUE_ELASTIC]
        if len(left) < len(gates):
            fields = _write_updates(pod, found.pod_set, running) | {"spec.schedulingGates": left}
            await self._writes.change_pod(pod, write_changes(pod, (), fields))
        found = self._pods.get(uid)
        if found is not None and found.is_gated:
            # It counts before the watch shows it.
            self._pods[uid] = found._replace(is_gated=False)
            counts = self._counts[found.chain]
            counts[found.pod_set, True] -= 1
            counts[found.pod_set, False] += 1


def _write_updates(pod: Json, pod_set: str, running: _Slice) -> Json:
    """Write the fields of a pod as they are with what admission checks add to it.

    The templates of its job have what the checks of the first slice have added. Each later slice is checked anew, and
    templates of a running job cannot change any more.

    Raises:
        Refusal: the pod has another value for something that is added.
    """
    addition = Addition(pod_set, 0, {}, {}, {}, ())
    try:
        return templates.merge(pod, workloads.add_updates(addition, running.checks))
    except CannotStart as error:
        raise Refusal("FailedToStart", f"pod {pod['metadata']['name']}: {error}") from None
