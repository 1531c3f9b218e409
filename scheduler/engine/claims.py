"""The keepers of ResourceClaims, and of the objects that say which devices there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from scheduler.api import kinds
from scheduler.api.claims import objects
from scheduler.api.door.decisions import Free, Outcome, Plan
from scheduler.api.door.events import BindFailed
from scheduler.api.door.notes import DevicesLeft, DevicesRead, Note
from scheduler.api.kind import Kind
from scheduler.engine.keeping import Keeper
from scheduler.errors import BadInput
from scheduler.plugins.claims import offers
from scheduler.state.claims.store import Claims
from scheduler.state.cluster import Cluster
from scheduler.waiting.pending import Pending

_NOTHING: tuple[Note, ...] = ()


def make_keepers(claims: Claims, pending: Pending) -> dict[str, Keeper]:
    """Make the keeper of each kind."""
    return {
        kinds.RESOURCE_CLAIMS.name: _keep_claims(claims, pending),
        **_wake_after(
            _keep_devices(
                kinds.DEVICE_CLASSES, claims.see_class, claims.drop_class, lambda: claims.classes
            ),
            claims,
            pending,
        ),
        **_keep_devices(
            kinds.RESOURCE_SLICES,
            claims.see_slice,
            claims.drop_slice,
            claims.inventory.list_slices,
        ),
        **_keep_devices(kinds.TAINT_RULES, claims.see_rule, claims.drop_rule, claims.list_rules),
    }


def confirm_bind(cluster: Cluster, uid: str) -> None:
    """Note that a pod was bound, and its claims written."""
    cluster.groups.note_bind(uid)
    cluster.claims.end_bind(uid, None)


def undo_bind(cluster: Cluster, event: BindFailed) -> None:
    """Free what was assumed for a pod whose bind failed, but for claims that may have been written."""
    pod = cluster.pods.get(event.uid)
    if pod is not None and event.claims:
        cluster.claims.doubt_pods([pod])
    cluster.forget(event.uid)
    versions = {(space, name): version for space, name, version in event.claims}
    cluster.claims.end_bind(event.uid, versions)


def _keep_claims(claims: Claims, pending: Pending) -> Keeper:
    def wake(uids: Iterable[str], now: float) -> Sequence[Note]:
        for uid in uids:
            pending.help_pod(uid, now)
        return _NOTHING

    def see(found: objects.ResourceClaim, now: float) -> Sequence[Note]:
        return wake(claims.see_claim(found), now)

    def gone(key: str, now: float) -> Sequence[Note]:
        return wake(claims.drop_claim(kinds.split_key(key)), now)

    return Keeper(see, gone, lambda: ["/".join(key) for key in claims.list_objects()])


def catch_up(cluster: Cluster, outcome: Outcome, *, decides: bool) -> None:
    """Bring what follows from slices and classes up to date, and, if anything is decided, let the claims go that binds have left."""
    cluster.claims.flush()
    offers.refresh(cluster)
    if not decides:
        return
    outcome.plans += [
        Plan(one.uid, frees=(Free(one.path_key, one.object_uid, one.version, deletes=True),))
        for one in cluster.claims.take_left()
    ]


def _wake_after(
    keepers: Mapping[str, Keeper], claims: Claims, pending: Pending
) -> dict[str, Keeper]:
    """Let pods be tried whose extended resources have other classes after a change of classes."""

    def wake(told: Sequence[Note], now: float) -> Sequence[Note]:
        woken, claims.extended.woken = claims.extended.woken, {}
        for uid in woken:
            pending.help_pod(uid, now)
        return told

    def follow(keeper: Keeper) -> Keeper:
        return Keeper(
            lambda found, now: wake(keeper.see(found, now), now),
            lambda key, now: wake(keeper.gone(key, now), now),
            keeper.get_keys,
        )

    return {kind: follow(keeper) for kind, keeper in keepers.items()}


def _keep_devices(
    kind: Kind,
    put: Callable[[Any], None],
    drop: Callable[[str], None],
    list_names: Callable[[], Iterable[str]],
) -> dict[str, Keeper]:
    """Make the keeper of a kind of objects about devices; what cannot be read counts as gone."""
    wrong: set[str] = set()

    def see(found: Any, _: float) -> Sequence[Note]:
        name, problem = found.metadata.name, ""
        try:
            put(found)
        except BadInput as error:
            drop(name)
            problem = str(error)
        if not problem and name not in wrong:
            return _NOTHING
        (wrong.add if problem else wrong.discard)(name)
        return (DevicesRead(kind.name, name, found.metadata, problem),)

    def gone(key: str, _: float) -> Sequence[Note]:
        drop(key)
        if key not in wrong:
            return _NOTHING
        wrong.discard(key)
        return (DevicesLeft(kind.name, key),)

    return {kind.name: Keeper(see, gone, lambda: [*list_names(), *wrong])}
