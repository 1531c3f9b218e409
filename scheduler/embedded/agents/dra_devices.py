"""Devices as DRA drivers publish them: whole GPUs, GPUs that are cut into MIG instances on request, HAMi's shares, and network cards.

Each function makes the devices of one driver on one node: a ``Pool``, which ``dra_driver`` publishes.

Sources: kubernetes-sigs/dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin; Project-HAMi/k8s-dra-driver.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from scheduler.embedded.store.metadata import make_uid

Json = dict[str, Any]

NVIDIA, HAMI, NETWORK = "gpu.nvidia.com", "hami-core-gpu.project-hami.io", "dra.net"
MIG_CLASS = "mig.nvidia.com"
PCIE_ROOT, _NUMA = "resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/numaNode"
_GPUS_PER_ROOT = 2
_MEMORY_MIB = 81152
_SLICES = 8


class Profile(NamedTuple):
    """A kind of MIG instances of an H100 with 80 GB: what an instance draws, and where it may begin."""

    name: str
    number: int
    multiprocessors: int
    copy_engines: int
    decoders: int
    jpeg_engines: int
    ofa_engines: int
    memory_mib: int
    n_slices: int
    places: Sequence[int]


PROFILES = (
    Profile("1g.10gb", 19, 16, 1, 1, 1, 0, 9856, 1, range(7)),
    Profile("1g.20gb", 15, 26, 1, 1, 1, 0, 20096, 2, (0, 2, 4, 6)),
    Profile("2g.20gb", 14, 32, 2, 2, 2, 0, 20096, 2, (0, 2, 4)),
    Profile("3g.40gb", 9, 60, 3, 3, 3, 0, 40448, 4, (0, 4)),
    Profile("4g.40gb", 5, 64, 4, 4, 4, 0, 40448, 4, (0,)),
    Profile("7g.80gb", 0, 132, 8, 7, 7, 1, _MEMORY_MIB, 8, (0,)),
)
# The whole card, in the same figures.
_WHOLE = PROFILES[-1]


class Pool(NamedTuple):
    """The devices of one driver on one node, with the counters that they draw on; counters are slices of their own."""

    driver: str
    devices: tuple[Json, ...]
    counters: tuple[Json, ...] = ()


def make_classes() -> list[Json]:
    """Make the classes that the charts of these drivers install."""
    types = {NVIDIA: "gpu", MIG_CLASS: "mig"}
    texts = {
        name: f"device.driver == '{NVIDIA}' && device.attributes['{NVIDIA}'].type == '{kind}'"
        for name, kind in types.items()
    } | {name: f"device.driver == '{name}'" for name in (HAMI, NETWORK)}
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {"expression": text}}]},
        }
        for name, text in texts.items()
    ]


def make_gpus(n: int) -> Pool:
    """Make whole GPUs."""
    return Pool(NVIDIA, tuple(_make_gpu(i) for i in range(n)))


def make_mig_gpus(n: int) -> Pool:
    """Make GPUs each of which is a device, and so is every instance into which it could be cut; counters say what excludes what."""
    devices: list[Json] = []
    for i in range(n):
        whole = _make_gpu(i)
        whole["consumesCounters"] = [_make_draw(i, _WHOLE, 0)]
        cut = [_make_instance(whole, i, one, at) for one in PROFILES for at in one.places]
        devices += [whole, *cut]
    devices.sort(key=lambda one: str(one["name"]))
    sets = ({"name": _name_set(i), "counters": _list_counters(_WHOLE, 0)} for i in range(n))
    return Pool(NVIDIA, tuple(devices), tuple(sets))


def make_hami_gpus(n: int, memory_mib: int = _MEMORY_MIB) -> Pool:
    """Make GPUs that HAMi-core shares out by cores and memory."""
    everything = f"{memory_mib}Mi"
    of_cores = {"default": "100", "validRange": {"min": "0", "max": "100", "step": "1"}}
    of_memory = {"default": everything, "validRange": {"min": "1Mi", "max": everything, "step": "1Mi"}}  # fmt: skip
    return Pool(
        HAMI,
        tuple(
            {
                "name": f"hami-gpu-{i}",
                "allowMultipleAllocations": True,
                "attributes": {
                    "type": {"string": "hami-gpu"},
                    "minor": {"int": i},
                    "uuid": {"string": f"GPU-{make_uid()}"},
                    **_find_place(i),
                },
                "capacity": {
                    "cores": {"value": "100", "requestPolicy": of_cores},
                    "memory": {"value": everything, "requestPolicy": of_memory},
                },
            }
            for i in range(n)
        ),
    )


def make_nics(n: int) -> Pool:
    """Make network cards; two of them are behind one PCIe root, as GPUs are."""
    return Pool(
        NETWORK,
        tuple(
            {"name": f"nic-{i}", "attributes": {"ifName": {"string": f"eth{i}"}, **_find_place(i)}}
            for i in range(n)
        ),
    )


def _find_place(i: int) -> Json:
    root = i // _GPUS_PER_ROOT
    return {PCIE_ROOT: {"string": f"pci0000:{root:02x}"}, _NUMA: {"int": root // 2}}


def _make_gpu(i: int) -> Json:
    return {
        "name": f"gpu-{i}",
        "attributes": {
            "type": {"string": "gpu"},
            "uuid": {"string": f"GPU-{make_uid()}"},
            "productName": {"string": "NVIDIA H100 80GB HBM3"},
            "brand": {"string": "Nvidia"},
            "architecture": {"string": "Hopper"},
            "cudaComputeCapability": {"version": "9.0.0"},
            "driverVersion": {"version": "580.126.20"},
            **_find_place(i),
        },
        "capacity": _list_capacities(_WHOLE),
    }


def _make_instance(whole: Json, i: int, profile: Profile, at: int) -> Json:
    """Make an instance that begins at a memory slice of a card."""
    shown = profile.name.replace(".", "")
    attributes = whole["attributes"]
    of_card = {name: one for name, one in attributes.items() if name not in {"type", "uuid"}}
    return {
        "name": f"gpu-{i}-mig-{shown}-{profile.number}-{at}",
        "attributes": {
            "type": {"string": "mig"},
            "profile": {"string": profile.name},
            "parentUUID": attributes["uuid"],
            **of_card,
        },
        "capacity": _list_capacities(profile),
        "consumesCounters": [_make_draw(i, profile, at)],
    }


def _list_capacities(profile: Profile) -> Json:
    return {
        "memory": {"value": f"{profile.memory_mib}Mi"},
        "multiprocessors": {"value": str(profile.multiprocessors)},
        "copyEngines": {"value": str(profile.copy_engines)},
        "decoders": {"value": str(profile.decoders)},
        "jpegEngines": {"value": str(profile.jpeg_engines)},
        "ofaEngines": {"value": str(profile.ofa_engines)},
    }


def _name_set(i: int) -> str:
    return f"gpu-{i}-counter-set"


def _make_draw(i: int, profile: Profile, at: int) -> Json:
    return {"counterSet": _name_set(i), "counters": _list_counters(profile, at)}


def _list_counters(profile: Profile, at: int) -> Json:
    amounts = {
        "memory": f"{profile.memory_mib}Mi",
        "multiprocessors": str(profile.multiprocessors),
        "copy-engines": str(profile.copy_engines),
        "decoders": str(profile.decoders),
        "jpeg-engines": str(profile.jpeg_engines),
        "ofa-engines": str(profile.ofa_engines),
        **{f"memory-slice-{at + k}": "1" for k in range(profile.n_slices)},
    }
    return {name: {"value": amount} for name, amount in amounts.items()}
