"""What a container gets from the parts of the webhook for the vendors beside NVIDIA.

A container requests devices if its limits have the resource that counts them. Some vendors check or complete what it says.

Source: HAMi (v2.10), ``MutateAdmission`` in ``pkg/device/*``. HAMi changes some limits and leaves the requests, so that the API
server refuses the pod; here both are changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial

from scheduler.api.admission.settings import AdmissionSettings
from scheduler.api.hami_config.sections import (
    Ascend,
    DeviceConfig,
    Enflame,
    Iluvatar,
    Kunlun,
    Metax,
    Shares,
)
from scheduler.devices.admission.drafts import ContainerDraft, PodDraft
from scheduler.devices.vendors import ascend, kunlun, metax, table
from scheduler.errors import BadInput

# Gives a container what it lacks, and says whether it requests devices. Raises ``BadInput`` for what cannot be.
Mutate = Callable[[ContainerDraft, PodDraft, AdmissionSettings], bool]
_Part = Callable[[ContainerDraft, PodDraft], bool]

_PERCENT = 100
# The plugins count in 32 bits.
_COUNT_MAX = 2**31 - 1
_CARD_CORES, _CARD_UNITS = 16, 96
_CARD_SIZES = (2, 4, 8, 16, 32, 64, 96)
_PAIR = 2


@lru_cache(maxsize=4)
def list_mutations(config: DeviceConfig) -> dict[str, Mutate]:
    """List the parts of all vendors, by HAMi's words for their devices."""
    return {word: partial(_mutate, part) for word, part in _list_parts(config)}


def _mutate(
    part: _Part, container: ContainerDraft, pod: PodDraft, _settings: AdmissionSettings
) -> bool:
    return part(container, pod)


def _list_parts(config: DeviceConfig) -> Iterator[tuple[str, _Part]]:
    yield from ((kind.word, partial(_count, kind.cards)) for kind in table.list_kinds(config))
    # Of these more is checked or completed, in the place of the count.
    yield "AMD", partial(_mutate_amd, config.amd)
    yield "Mthreads", partial(_mutate_mthreads, config.mthreads)
    yield "Metax-SGPU", partial(_mutate_metax, config.metax)
    yield "Enflame", partial(_mutate_enflame, config.enflame)
    yield "XPU", partial(_mutate_kunlun, config.kunlun)
    yield "AWSNeuron", partial(_mutate_neuron, config.awsneuron)
    yield from ((one.word, partial(_mutate_ascend, one)) for one in config.vnpus)
    yield from ((one.word, partial(_mutate_iluvatar, one)) for one in config.iluvatars)


def _count(resource: str, container: ContainerDraft, _pod: PodDraft) -> bool:
    return container.has_limit(resource)


def _refuse(container: ContainerDraft, resource: str, problem: str) -> BadInput:
    return BadInput(f"container {container.name}: {resource}", problem)


def _check_count(container: ContainerDraft, resource: str, n: int | None) -> int | None:
    """Return a number, or None for none.

    Raises:
        BadInput: no node has so many.
    """
    if n is not None and n > _COUNT_MAX:
        raise _refuse(container, resource, f"{n} is more than {_COUNT_MAX}")
    return n


def _mutate_amd(section: Shares, container: ContainerDraft, _pod: PodDraft) -> bool:
    cores = container.read_limit(section.cores)
    if container.has_limit(section.cards) and cores is not None and not 1 <= cores <= _PERCENT:
        raise _refuse(container, section.cores, f"{cores} is not within 1..{_PERCENT}")
    return any(map(container.has_limit, (section.cards, section.memory, section.cores)))


def _mutate_mthreads(section: Shares, container: ContainerDraft, pod: PodDraft) -> bool:
    """Give whole cards all their cores and memory; a share of one card has one of some sizes."""
    n = _check_count(container, section.cards, container.read_resource(section.cards))
    if n is None:
        return False
    if n <= 0:
        raise _refuse(container, section.cards, f"{n} is not greater than 0")
    memory = container.read_limit(section.memory)
    if n > 1 or memory is None:
        container.set_amount(section.cores, n * _CARD_CORES)
        container.set_amount(section.memory, n * _CARD_UNITS)
    elif memory not in _CARD_SIZES:
        sizes = ", ".join(map(str, _CARD_SIZES))
        raise _refuse(container, section.memory, f"{memory} is not one of {sizes}")
    if n > 1:
        pod.annotations["mthreads.com/request-gpu-num"] = str(n)
    return True


def _mutate_metax(section: Metax, container: ContainerDraft, pod: PodDraft) -> bool:
    """Give a pod with shares a policy; one with a class has one card."""
    n = _check_count(container, section.share_count, container.read_limit(section.share_count))
    if n is None:
        return False
    kind = metax.read_word(pod.annotations, metax.CLASS, metax.CLASSES)
    if kind and n != 1:
        raise _refuse(container, section.share_count, f"{n} is not 1, as pods with a class have")
    policy = metax.read_word(pod.annotations, metax.POLICY, metax.POLICIES)
    if kind != metax.ONLINE and not policy:
        pod.annotations[metax.POLICY] = metax.DEFAULT_POLICY
    return True


def _mutate_enflame(section: Enflame, container: ContainerDraft, _pod: PodDraft) -> bool:
    """Check the size, or else memory and cores."""
    size = container.read_resource(section.size)
    asked = {section.size: size}
    if size is None:
        asked = {one: container.read_resource(one) for one in (section.memory, section.cores)}
    given = {resource: n for resource, n in asked.items() if n is not None}
    for resource, n in given.items():
        _check_count(container, resource, n)
        if n <= 0 or (resource == section.cores and n > _PERCENT):
            most = f" and at most {_PERCENT}" if resource == section.cores else ""
            raise _refuse(container, resource, f"{n} is not greater than 0{most}")
        container.set_amount(resource, n)
    return bool(given)


def _mutate_kunlun(section: Kunlun, container: ContainerDraft, _pod: PodDraft) -> bool:
    """Round the memory of a share up to the size of a part."""
    memory = container.read_limit(section.share_memory)
    asks = container.has_limit(section.share_count)
    if asks and memory is not None:
        container.set_amount(section.share_memory, kunlun.fit_size(memory)[0])
    return asks


def _mutate_neuron(section: Shares, container: ContainerDraft, _pod: PodDraft) -> bool:
    """Check the number of devices, or else of cores."""
    for resource in (section.cards, section.cores):
        n = _check_count(container, resource, container.read_whole(resource))
        if n is None:
            continue
        if n <= 0:
            raise _refuse(container, resource, f"{n} is not greater than 0")
        if resource == section.cores and n > 1 and n % _PAIR:
            raise _refuse(container, resource, f"{n} is neither 1 nor a multiple of {_PAIR}")
        return True
    return False


def _mutate_ascend(chip: Ascend, container: ContainerDraft, pod: PodDraft) -> bool:
    """Round memory up to a template, and one device of a module up to the module."""
    n = _check_count(container, chip.cards, container.read_limit(chip.cards))
    if n is None:
        if chip.hides_devices:
            container.add_env("ASCEND_VISIBLE_DEVICES", "")
        return False
    if chip.is_in_pairs and n != 1 and n % _PAIR:
        raise _refuse(container, chip.cards, f"{n} is neither 1 nor a multiple of {_PAIR}")
    is_soft = pod.annotations.get(ascend.MODE) == ascend.SOFT
    if not is_soft and chip.cores and container.read_resource(chip.cores):
        problem = f"only pods with the annotation {ascend.MODE}: {ascend.SOFT} may request it"
        raise _refuse(container, chip.cores, problem)
    mib = _find_memory(chip, container, is_soft=is_soft)
    if not is_soft and n > 1 and mib != chip.whole_mib:
        problem = "is for a part of one device; several devices are whole"
        raise _refuse(container, chip.memory, problem)
    container.set_amount(chip.memory, mib)
    if chip.is_in_pairs and n == 1:
        container.set_amount(chip.cards, _PAIR)
    if chip.runtime_class and pod.runtime_class is None:
        pod.runtime_class = chip.runtime_class
    return True


def _find_memory(chip: Ascend, container: ContainerDraft, *, is_soft: bool) -> int:
    asked = container.read_limit(chip.memory)
    if asked is None:
        return chip.whole_mib
    mib = asked if is_soft else ascend.find_part(chip, asked)[0]
    if mib <= 0:
        raise _refuse(container, chip.memory, f"{asked} is not within 1..{chip.capacity_mib}")
    return mib


def _mutate_iluvatar(chip: Iluvatar, container: ContainerDraft, _pod: PodDraft) -> bool:
    """Give several chips all their cores, and the container a variable with its name."""
    n = _check_count(container, chip.cards, container.read_limit(chip.cards))
    if n is None:
        return False
    if n > 1:
        container.set_amount(chip.cores, n * _PERCENT)
    if container.name and not container.has_env("SOL_CONTINER_NAME"):
        container.add_env("SOL_CONTINER_NAME", container.name)
    return True
