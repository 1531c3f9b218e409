"""The fence makes binds impossible that were sent and whose fate is not known. It does not wait them out.

A request that was sent may take effect at any time later, even if its sender is gone. Every Binding
carries the ``resourceVersion`` of its pod, so it lands only while the pod is as its sender knew it; and
its sender learnt that version before it checked that its term lasts. So a change of a pod makes every
bind impossible that was sent for the pod before: within a term the binds whose answers were lost, and
after a change of leaders all that earlier leaders have sent.

The change is a touch: an annotation that says who touched the pod, and when. The touch carries the pod's
uid and version itself, so it can only land on the very state that was read. A bind in doubt may have bound
the pod by then: the answer to the touch says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import structlog

from scheduler.api import kinds, names
from scheduler.errors import ApiError
from scheduler.kube import answers, client, troubles, wall_clock
from scheduler.kube.client import ApiClient
from scheduler.kube.patience import Patience
from scheduler.kube.troubles import Trouble

Json = dict[str, Any]
Gate = contextlib.AbstractAsyncContextManager[None]

# The most requests at once after a change of leaders: half of the client's connections, because lists and
# watches need some too. While pods are bound, fewer.
_AT_ONCE, _AT_ONCE_BESIDE = 32, 4
_LOG_SECONDS = 5.0
# How long a request waits for an answer, at first and at most, and the longest wait after a request that failed:
# nothing is decided before the pods are fenced.
_PATIENCE_SECONDS, _ANSWER_SECONDS, _BACKOFF_SECONDS = 0.5, 5.0, 0.5
_log = structlog.get_logger("evenkeel.fence")


class _TouchedMeta(msgspec.Struct, rename="camel"):
    resource_version: str
    deletion_timestamp: str | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Touched(msgspec.Struct):
    """The few fields that are new in a pod, which may be a megabyte."""

    metadata: _TouchedMeta
    spec: _Spec = msgspec.field(default_factory=_Spec)


_touched = msgspec.json.Decoder(_Touched)


class Target(NamedTuple):
    """A pod at one version."""

    namespace: str
    name: str
    uid: str
    version: str

    @property
    def path(self) -> str:
        """Path of the pod at the API server."""
        return kinds.PODS.find_path(self.name, self.namespace)


class Fence:
    """Touches pods.

    Args:
        api: the API server.
        identity: who touches, for people who read the annotation.

    Attributes:
        n_left: how many pods of the present sweep are not fenced yet.
        trouble: the failures of requests of the present sweep; None while none has failed.
    """

    def __init__(self, api: ApiClient, *, identity: str) -> None:
        self._api, self._identity = api, identity
        self._serial = itertools.count(1)
        self._patience = Patience(_PATIENCE_SECONDS)
        self.n_left = 0
        self.trouble: Trouble | None = None

    async def seal_pod(self, pod: Target, note_trouble: Callable[[Exception], Gate]) -> Json | None:
        """Return once no bind that carries the pod's version, or an older one, can land any more.

        It tries until it succeeds, because there is no other way to know. A pod that is found at another
        version needs no touch: whatever changed the pod has done what the touch would do.

        Args:
            pod: the pod, at the newest version that a bind may carry.
            note_trouble: takes the error of a failed request; what it returns is entered for every request
                from then on. It may raise, to give the pod up.

        Returns:
            The pod as it is now, perhaps bound, and at least its version; None if the pod is gone.
        """
        gate: Gate = contextlib.nullcontext()
        attempt = 0
        has_changed = False
        while True:
            try:
                async with gate, self._patience.limit(_ANSWER_SECONDS):
                    if not has_changed:
                        return await self._touch_pod(pod)
                    found: Json = await self._api.get(pod.path)
            except Exception as error:  # noqa: BLE001 - giving up could allocate cards twice
                if answers.is_not_found(error):
                    return None
                if not has_changed and answers.is_conflict(error):
                    # Perhaps a touch whose answer was lost has changed it. It need only be read now.
                    has_changed = True
                    continue
                gate = note_trouble(error)
            else:
                metadata = found["metadata"]
                if metadata["uid"] != pod.uid:
                    return None
                if metadata["resourceVersion"] != pod.version or is_closed(found):
                    return found
                has_changed = False
                unchanged = f"{pod.path}: a conflict, and its version is still {pod.version}"
                gate = note_trouble(ApiError(0, "NotTouched", unchanged))
            attempt += 1
            await asyncio.sleep(client.get_backoff(attempt, most=_BACKOFF_SECONDS))

    async def sweep_pods(
        self,
        pods: list[Target],
        fenced: set[str],
        has_changed: Callable[[Target], bool] = lambda _: False,
        *,
        is_beside_binds: bool = False,
    ) -> int:
        """Fence pods; return how many of them were found to be bound.

        Args:
            pods: pods that earlier leaders may have been binding.
            fenced: uids of pods that were fenced since the last of these leaders. Uids are added, so that a sweep
                that was cancelled goes on where it was.
            has_changed: whether the watch has delivered a newer version of a pod, so that the pod need not be read:
                the watch also delivers a touch whose answer was lost.
            is_beside_binds: whether pods are bound meanwhile. Then a pod that has changed is not touched, because a
                bind that was decided for the pod carries its present version.
        """
        pods = [pod for pod in pods if pod.uid not in fenced]
        began = asyncio.get_running_loop().time()
        self.n_left, self.trouble = len(pods), None
        n_bound, waiting = 0, iter(pods)

        async def work() -> None:
            nonlocal n_bound
            for pod in waiting:
                if not (is_beside_binds and has_changed(pod)):
                    n_bound += await self._fence_pod(pod, has_changed)
                fenced.add(pod.uid)
                self.n_left -= 1

        async with asyncio.TaskGroup() as group:
            logging = group.create_task(self._log_progress())
            at_once = _AT_ONCE_BESIDE if is_beside_binds else _AT_ONCE
            working = [group.create_task(work()) for _ in range(min(at_once, len(pods)))]
            await asyncio.gather(*working)
            logging.cancel()
        self.trouble = None
        _log.info(
            "fenced the pods that previous leaders may have been binding",
            pods=len(pods),
            bound_meanwhile=n_bound,
            seconds=round(asyncio.get_running_loop().time() - began, 3),
        )
        return n_bound

    async def _fence_pod(self, pod: Target, has_changed: Callable[[Target], bool]) -> bool:
        """Fence a pod for a new leader; return whether the pod was found to be bound."""

        def note_trouble(error: Exception) -> Gate:
            if answers.is_too_large(error):
                raise _TooLargeError(str(error))
            if has_changed(pod):
                raise _ChangedError
            self.trouble = troubles.add_failure(self.trouble, error)
            return contextlib.nullcontext()

        try:
            found = await self.seal_pod(pod, note_trouble)
        except _TooLargeError as error:
            _log.error("a pod is too large to be fenced", pod=pod.path, error=str(error))
        except _ChangedError:
            pass
        else:
            return bool(found and found["spec"].get("nodeName"))
        return False

    async def _log_progress(self) -> None:
        """Log one line now and then for all pods that cannot be fenced, not one for each try."""
        while True:
            await asyncio.sleep(_LOG_SECONDS)
            if self.trouble:
                _log.warning(
                    "pods are not fenced yet", left=self.n_left, error=self.trouble.message
                )

    async def _touch_pod(self, pod: Target) -> Json:
        now = wall_clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        # Each word is used once: a patch that changes nothing leaves the version as it is.
        word = f"{now} {self._identity} {next(self._serial)}"
        metadata = {"uid": pod.uid, "resourceVersion": pod.version}
        annotated = {"metadata": {**metadata, "annotations": {names.FENCED: word}}}
        try:
            payload = await self._api.send(
                "PATCH", f"{pod.path}/status", annotated, content_type=client.MERGE_PATCH
            )
        except ApiError as error:
            if not answers.is_invalid(error):
                raise
            # The pod's annotations are as large as they may be. That must not keep a replica from leading.
            condition = {
                "type": names.FENCED, "status": "True", "message": word, "lastTransitionTime": now
            }  # fmt: skip
            payload = await self._api.send(
                "PATCH",
                f"{pod.path}/status",
                {"metadata": metadata, "status": {"conditions": [condition]}},
                content_type=client.STRATEGIC_PATCH,
            )
        touched = _touched.decode(payload)
        version = touched.metadata.resource_version
        if version == pod.version:
            raise ApiError(0, "NotTouched", f"{pod.path}: its version is still {version}")
        if touched.spec.node_name or touched.metadata.deletion_timestamp:
            # A bind in doubt took effect, and the watch has delivered the version that the bind made.
            found: Json = msgspec.json.decode(payload)
            return found
        return {"metadata": {"uid": pod.uid, "resourceVersion": version}, "spec": {}}


class _ChangedError(Exception):
    """The watch has delivered a change of a pod: no earlier bind can land on the pod any more."""


class _TooLargeError(Exception):
    """A pod is as large as etcd allows, so nothing can be written on it any more.

    No bind can be written either, because a bind adds to the pod. A leader that waited for such a pod would
    let everyone who may create pods keep all replicas from leading.
    """


def is_closed(pod: Json) -> bool:
    """Whether no bind at all can land on a pod any more."""
    return bool(pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"))
