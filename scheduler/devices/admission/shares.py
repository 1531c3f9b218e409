"""A request for a share of a GPU, written as a request to what shares GPUs in the cluster.

Pods request ``evenkeel.dev/gpu-memory`` and ``evenkeel.dev/gpu-cores``, or have KAI's annotations. Neither is known to a
kubelet, and nothing can change the limits of a pod later: what serves the pod has to be chosen before its node is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from scheduler.api import names, plugin_parts, values, wire
from scheduler.api.admission import backends
from scheduler.api.admission.backends import Backend
from scheduler.api.admission.settings import AdmissionSettings
from scheduler.api.plugin_parts import Way
from scheduler.api.pods import kai_shares
from scheduler.devices.admission.drafts import ContainerDraft, PodDraft
from scheduler.errors import BadInput

_MIB, _PERCENT, _MILLIONTHS = 2**20, 100, 1_000_000
_MIB_MAX = 2**31 - 1
# A slice of the compute comes with at least this part of its share of the memory: an eighth for a seventh.
_LEAST_MEMORY = 7 / 8
_EPSILON = 1e-9

# From the resource by which pods request cards, and a pod, to the ways in which the nodes share GPUs that the pod accepts;
# without a pod, all nodes.
ListBackends = Callable[[str, wire.Pod | None], Sequence[Backend]]


class _Wish(NamedTuple):
    """What a container wants of each of its cards.

    Attributes:
        cards: of so many cards.
        mib: memory; 0 if it says a part.
        part: part of the memory, in millionths; 0 if it says MiB.
        cores: percent of the compute; 0 if it does not say.
        words: what it has written.
    """

    cards: int
    mib: int
    part: int
    cores: int
    words: str


def translate(pod: PodDraft, settings: AdmissionSettings, list_backends: ListBackends) -> bool:
    """Write the requests for shares of all containers as requests to what is there; return whether there are any.

    Raises:
        BadInput: a request cannot be read, or nothing that is there can serve it.
    """
    done = []
    wishes = [(one, _read_wish(one, settings)) for one in pod.list_all_containers()]
    found = [(one, wish) for one, wish in wishes if wish is not None]
    found = found or list(_read_kai(pod, settings))
    chosen = _choose_reachable(found, pod, settings, list_backends) if found else []
    for (container, wish), backend in zip(found, chosen, strict=True):
        for resource in (names.SHARE_MEMORY, names.SHARE_CORES):
            container.drop(resource)
        _write(container, wish, backend, settings)
        pod.node_selector |= dict(backend.labels)
        done.append(f"{container.name}: {wish.words} as {backend.resource} ({backend.way})")
    if done:
        pod.annotations[names.SHARED_AS] = "; ".join(done)
    return bool(done)


def _read_wish(container: ContainerDraft, settings: AdmissionSettings) -> _Wish | None:
    """Read the request of a container in neutral words; None if it has none."""
    given = [one for one in (names.SHARE_MEMORY, names.SHARE_CORES) if container.has_resource(one)]
    if not given:
        return None
    for other in _list_own(container, settings):
        raise _refuse(container, given[0], f"may not stand beside {other}; request one of them")
    memory, cores = (
        container.read_whole(names.SHARE_MEMORY),
        container.read_whole(names.SHARE_CORES),
    )
    if memory is not None and not 0 < memory <= _MIB_MAX * _MIB:
        problem = f"{memory} is not an amount of memory such as 8Gi"
        raise _refuse(container, names.SHARE_MEMORY, problem)
    if memory is not None and memory < _MIB:
        problem = f"{memory} bytes are less than 1Mi; write an amount such as 8Gi"
        raise _refuse(container, names.SHARE_MEMORY, problem)
    if cores is not None and not 0 < cores <= _PERCENT:
        raise _refuse(container, names.SHARE_CORES, f"{cores} is not within 1..{_PERCENT}")
    words = ", ".join(f"{one} {container.show(one)}" for one in given)
    mib = -(-(memory or 0) // _MIB)
    # Who says nothing of memory gets as large a part of it as of the compute.
    part = 0 if mib else (cores or 0) * _MILLIONTHS // _PERCENT
    return _Wish(1, mib, part, cores or 0, words)


def _read_kai(pod: PodDraft, settings: AdmissionSettings) -> Iterable[tuple[ContainerDraft, _Wish]]:
    """Read the share that KAI's annotations request for one container.

    The annotations have short names: on a pod that does not name us or a scheduler that is taken over, and on one that
    requests cards itself, they may mean anything.
    """
    if pod.scheduler_name not in {*settings.scheduler_names, *settings.taken_over}:
        return ()
    if any(_list_own(one, settings) for one in pod.list_all_containers()):
        return ()
    share = kai_shares.read_share(pod.annotations)
    if share is None:
        return ()
    name = pod.annotations.get(names.KAI_SHARING_CONTAINER)
    called = [one for one in pod.list_all_containers() if one.name == name]
    if name is not None and not called:
        field = f"metadata.annotations[{names.KAI_SHARING_CONTAINER}]"
        raise BadInput(field, f"the pod has no container {values.quote(name)}")
    key = names.KAI_GPU_MEMORY if share.mib else names.KAI_FRACTION
    words = f"{key} {pod.annotations[key]}"
    wish = _Wish(share.cards, share.mib, share.millionths, 0, words)
    return [((called or pod.containers)[0], wish)]


def _list_own(container: ContainerDraft, settings: AdmissionSettings) -> list[str]:
    """List the resources by which a container requests NVIDIA's GPUs or parts of them itself."""
    nvidia = settings.nvidia
    own = nvidia.count, nvidia.memory, nvidia.memory_percent, nvidia.cores
    found = [one for one in own if one and container.has_resource(one)]
    return found + [one for one in container.list_resources() if plugin_parts.is_part(one)]


def _choose_reachable(
    found: Sequence[tuple[ContainerDraft, _Wish]],
    pod: PodDraft,
    settings: AdmissionSettings,
    list_backends: ListBackends,
) -> list[Backend]:
    """Choose among what the nodes have that the pod accepts; if they cannot serve it, among what all nodes have.

    Labels and taints of nodes change, and the pod waits then as any other pod does.

    Raises:
        BadInput: no node can serve it.
    """
    count = settings.nvidia.count
    with suppress(BadInput):
        return _choose(found, pod, settings, list_backends(count, pod.read_pod()))
    return _choose(found, pod, settings, list_backends(count, None))


def _choose(
    found: Sequence[tuple[ContainerDraft, _Wish]],
    pod: PodDraft,
    settings: AdmissionSettings,
    there: Sequence[Backend],
) -> list[Backend]:
    """Choose for each wish, all in the first way by the settings that can serve them all: no GPU is shared in two ways.

    Raises:
        BadInput: there is no such way.
    """
    unserved, at_most = 0, -1
    for way in settings.ways:
        of_way = [one for one in there if one.way == way]
        chosen = _choose_sizes(found, pod, settings, of_way)
        if len(chosen) == len(found):
            return chosen
        if len(chosen) > at_most:
            at_most = unserved = len(chosen)
    container, wish = found[unserved]
    alone = any(
        _choose_sizes(found[unserved : unserved + 1], pod, settings, [one])
        for one in there
        if one.way in settings.ways
    )
    lack = "no way of sharing serves this and the pod's other containers" if alone else ""
    raise BadInput(f"container {container.name}: {wish.words}", lack or _describe_lack(there))


def _choose_sizes(
    found: Sequence[tuple[ContainerDraft, _Wish]],
    pod: PodDraft,
    settings: AdmissionSettings,
    there: Sequence[Backend],
) -> list[Backend]:
    """Choose for each wish the smallest share that suffices, on nodes that the pod accepts; end at the first without one."""
    chosen: list[Backend] = []
    selector = dict(pod.node_selector)
    for _, wish in found:
        fit = [
            one
            for one in there
            if _suffices(one, wish, settings)
            and all(selector.get(key, text) == text for key, text in one.labels)
        ]
        if not fit:
            break
        chosen.append(min(fit, key=lambda one: (one.gpus, one.mib, one.resource, one.labels)))
        selector |= dict(chosen[-1].labels)
    return chosen


def _suffices(one: Backend, wish: _Wish, settings: AdmissionSettings) -> bool:
    if one.way == backends.ANY_SIZE:
        nvidia = settings.nvidia
        needs = (
            (wish.mib, nvidia.memory),
            (wish.part, nvidia.memory_percent),
            (wish.cores, nvidia.cores),
        )
        return wish.mib <= one.mib and all(resource for figure, resource in needs if figure)
    # Shares of other ways may be shares of one card; only HAMi's plugin hands out different ones.
    if wish.cards > 1 or wish.mib > one.mib:
        return False
    memory = one.memory or one.gpus * (_LEAST_MEMORY if one.way == Way.MIG else 1)
    return wish.part <= _round_up(memory) * _MILLIONTHS // _PERCENT and wish.cores <= _round_up(one.gpus)  # fmt: skip


def _round_up(part: float) -> int:
    """Round a part up to percents: a third suffices for 34 percent."""
    return math.ceil(part * _PERCENT - _EPSILON)


def _write(
    container: ContainerDraft, wish: _Wish, backend: Backend, settings: AdmissionSettings
) -> None:
    container.add_limit(backend.resource, wish.cards)
    if backend.way != backends.ANY_SIZE:
        return
    nvidia = settings.nvidia
    if wish.mib:
        factor = max(1, settings.devices.nvidia.factor)
        container.add_limit(nvidia.memory, -(-wish.mib // factor))
    else:
        container.add_limit(nvidia.memory_percent, -(-wish.part * _PERCENT // _MILLIONTHS))
    if wish.cores:
        container.add_limit(nvidia.cores, wish.cores)


def _describe_lack(there: Sequence[Backend]) -> str:
    """Say what the cluster has for those who want something else."""
    if not there:
        return "no node shares its GPUs"
    shown = [
        f"{one.way} {one.resource}: {f'{one.mib} MiB' if one.mib else 'unknown memory'}, {one.gpus:.0%} of a GPU"
        for one in sorted(there, key=lambda one: (-one.gpus, -one.mib, one.resource))[:3]
    ]
    return f"no share on any node suffices; the largest are {'; '.join(shown)}"


def _refuse(container: ContainerDraft, resource: str, problem: str) -> BadInput:
    return BadInput(f"container {container.name}: {resource}", problem)
