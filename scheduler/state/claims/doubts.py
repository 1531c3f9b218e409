"""Decisions about claims whose writes may have taken effect, although nothing shows it yet.

A pod may be gone, or its node, while its bind is under way; and a bind that failed may have left its claims with their
devices. Such a decision counts until what is known of the claim is as new as the last write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.api.claims.answers import Allotment, ClaimKey
from scheduler.state.claims.objects import Claim
from scheduler.state.pods import PodRecord


@dataclass(slots=True)
class _Doubt:
    """A decision; ``version`` is that of the last write, empty if any later state of the claim will do, None while it is not known."""

    allotment: Allotment
    uid: str
    version: str | None = None


class Doubts:
    """The decisions in doubt, by claim."""

    def __init__(self) -> None:
        self._doubts: dict[ClaimKey, _Doubt] = {}
        # By uid what was allotted with the bind that has ended well, as long as the pod is there.
        self._bound: dict[str, tuple[Allotment, ...]] = {}

    def find(self, claim: Claim) -> Allotment | None:
        """Find the decision in doubt about a claim; None for none."""
        doubt = self._doubts.get(claim.key)
        return doubt.allotment if doubt is not None and doubt.allotment.uid == claim.uid else None

    def begin(self, allotment: Allotment, uid: str) -> None:
        """Doubt a decision for a pod, until its bind has ended."""
        self._doubts[allotment.key] = _Doubt(allotment, uid)

    def note_bound(self, pod: PodRecord) -> None:
        """Note that the bind of a pod has ended well, so that nothing of it is in doubt later."""
        if pod.allotted:
            self._bound[pod.uid] = pod.allotted

    def has_ended(self, pod: PodRecord) -> bool:
        """Whether the bind has ended well for which devices were allotted to a pod."""
        return self._bound.get(pod.uid) is pod.allotted

    def forget_pod(self, uid: str) -> None:
        """Forget the bind of a pod that is gone."""
        self._bound.pop(uid, None)

    def end_bind(self, uid: str, versions: Mapping[ClaimKey, str] | None) -> list[ClaimKey]:
        """Note that the bind of a pod has ended; list its claims in doubt.

        ``versions`` are those of the claims that it may have written, empty for one that is not known. None: it has
        written all of them.
        """
        mine = [key for key, one in self._doubts.items() if one.uid == uid]
        for key in mine:
            if versions is None or key in versions:
                self._doubts[key].version = versions[key] if versions else ""
            else:
                del self._doubts[key]
        return mine

    def see(self, key: ClaimKey, version: str) -> None:
        """Note the version of a claim that was seen; the doubt ends with one that is new enough."""
        doubt = self._doubts.get(key)
        if doubt is not None and doubt.version is not None and _is_as_new(version, doubt.version):
            del self._doubts[key]

    def drop(self, key: ClaimKey) -> None:
        """End the doubt about a claim that is gone, or that its pod has again."""
        self._doubts.pop(key, None)


def _is_as_new(seen: str, written: str) -> bool:
    """Whether a version that was seen is as new as a write; versions are numbers that rise."""
    if seen.isdecimal() and written.isdecimal():
        return int(seen) >= int(written)
    return True
