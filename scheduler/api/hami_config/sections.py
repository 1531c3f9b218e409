"""What the sections of ``device-config.yaml`` hold.

A value that a file leaves out has HAMi's meaning of absence, which is Go's zero: no name, zero, false. A resource
without a name does not exist: no pod can request it.

Source: HAMi v2.10, the config structs of ``pkg/device/*`` and ``pkg/scheduler/config``.
"""

from __future__ import annotations

from typing import NamedTuple


class Profiles(NamedTuple):
    """The MIG profiles that the device plugin may offer on cards of some models."""

    models: tuple[str, ...]
    profiles: tuple[str, ...]


class Instances(NamedTuple):
    """MIG instances of one profile in a geometry: the MiB of each, how many, and the percentage of cores of each.

    Files for HAMi up to v2.7 do not tell the cores.
    """

    profile: str
    mib: int
    number: int
    cores: int = 0


class Geometries(NamedTuple):
    """The geometries into which HAMi up to v2.9 cuts cards of some models."""

    models: tuple[str, ...]
    geometries: tuple[tuple[Instances, ...], ...]


class Shares(NamedTuple):
    """The resources of a vendor whose containers request cards, memory and cores.

    Attributes:
        cards: the resource that counts cards.
        memory, cores: the resources of memory and of cores; empty where the vendor has none.
        factor: multiplies each amount of memory; 0 and 1 leave it as it is.
    """

    cards: str = ""
    memory: str = ""
    cores: str = ""
    factor: int = 0


class Nvidia(NamedTuple):
    """NVIDIA's section.

    Attributes:
        cards, memory, memory_percent, cores, priority: names of resources.
        factor: multiplies each amount of memory that a container requests; 0 and 1 leave it as it is.
        default_mib, default_cores: what a container gets that requests cards but no memory, or no cores. 0 MiB mean all
            memory of the card.
        default_count: how many cards a container gets that requests memory or cores but no cards.
        hides_cards: whether containers without cards see none.
        core_policy, runtime_class: what the webhook writes on containers and pods; empty for nothing.
        split_count, memory_scaling, core_scaling, unified_mib, log_level, has_numa: what the device plugin does on nodes
            that ``config.json`` says nothing else of. 0 and empty: not said.
        ignores_cores: whether the device plugin leaves out the limit of cores.
        profiles: the MIG profiles that HAMi from v2.10 offers.
        geometries: the MIG geometries of HAMi up to v2.9.
    """

    cards: str = ""
    memory: str = ""
    memory_percent: str = ""
    cores: str = ""
    priority: str = ""
    factor: int = 0
    default_mib: int = 0
    default_cores: int = 0
    default_count: int = 0
    hides_cards: bool = False
    core_policy: str = ""
    runtime_class: str = ""
    split_count: int = 0
    memory_scaling: float = 0.0
    core_scaling: float = 0.0
    unified_mib: int = 0
    log_level: str = ""
    has_numa: bool = False
    ignores_cores: bool = False
    profiles: tuple[Profiles, ...] = ()
    geometries: tuple[Geometries, ...] = ()


class Metax(NamedTuple):
    """Metax's section: whole cards, and shares of cards.

    Attributes:
        cards: the resource that counts whole cards.
        share_count, share_memory, share_cores: the resources of shares.
        is_topology_aware: whether nodes are scored by the links between shared cards that a pod gets as a whole.
    """

    cards: str = ""
    share_count: str = ""
    share_memory: str = ""
    share_cores: str = ""
    is_topology_aware: bool = False


class Enflame(NamedTuple):
    """Enflame's section: whole cards, and partitions of cards.

    Attributes:
        cards: the resource that counts whole cards.
        size: the resource whose amount is the size of a partition.
        memory, cores: the resources that say what a partition must have at least.
    """

    cards: str = ""
    size: str = "enflame.com/drs-gcu"
    memory: str = "enflame.com/gcu-memory"
    cores: str = "enflame.com/gcu-core"


class Kunlun(NamedTuple):
    """Kunlun's section: the resources of whole cards, and of shares."""

    cards: str = ""
    share_count: str = ""
    share_memory: str = ""


class Iluvatar(NamedTuple):
    """One chip of Iluvatar; ``word`` is HAMi's name for it in annotations."""

    word: str
    chip: str = ""
    cards: str = ""
    memory: str = ""
    cores: str = ""


class Template(NamedTuple):
    """A part of an Ascend device that can be cut: its memory in MiB, and how many AI cores and AI CPUs it has."""

    name: str
    mib: int
    ai_cores: int = 0
    ai_cpus: int = 0


class Ascend(NamedTuple):
    """One chip of Ascend.

    Attributes:
        word: HAMi's name for it in annotations.
        chip: the name that the driver has for it.
        cards, memory, cores: names of resources.
        factor: multiplies each amount of memory; 0 and 1 leave it as it is.
        whole_mib: the memory that a container gets on a device of its own.
        capacity_mib: the most memory that a container may request of one device.
        ai_cores, ai_cpus: how many a device has.
        runtime_class: what the webhook writes on pods; empty for nothing.
        hides_devices: whether containers without devices see none.
        is_in_pairs: whether devices are on modules of two, which containers get as a whole.
        templates: the parts into which a device can be cut, the smallest first.
    """

    word: str
    chip: str = ""
    cards: str = ""
    memory: str = ""
    cores: str = ""
    factor: int = 0
    whole_mib: int = 0
    capacity_mib: int = 0
    ai_cores: int = 0
    ai_cpus: int = 0
    runtime_class: str = ""
    hides_devices: bool = False
    is_in_pairs: bool = False
    templates: tuple[Template, ...] = ()


class DeviceConfig(NamedTuple):
    """The whole file.

    Attributes:
        has_soft_split: whether Ascend devices are split by HAMi's library on nodes that say nothing else.
    """

    nvidia: Nvidia = Nvidia()
    cambricon: Shares = Shares()
    hygon: Shares = Shares()
    metax: Metax = Metax()
    mthreads: Shares = Shares()
    enflame: Enflame = Enflame()
    kunlun: Kunlun = Kunlun()
    awsneuron: Shares = Shares()
    amd: Shares = Shares()
    vastai: Shares = Shares()
    biren: Shares = Shares()
    iluvatars: tuple[Iluvatar, ...] = ()
    vnpus: tuple[Ascend, ...] = ()
    has_soft_split: bool = False
