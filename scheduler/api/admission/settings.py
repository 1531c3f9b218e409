"""How pods with devices are admitted: by which resources they request devices, and what they get then."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from scheduler.api import kinds, names
from scheduler.api.admission.backends import WAYS
from scheduler.api.hami_config.chart import CHART
from scheduler.api.hami_config.maps import DeviceSettings
from scheduler.api.hami_config.sections import DeviceConfig, Nvidia
from scheduler.api.kind import Kind
from scheduler.api.queues.settings import WebhookSettings

# By the words of HAMi: the core policy that writes no environment variable.
DEFAULT_POLICY = "default"
CORE_POLICIES = (DEFAULT_POLICY, "force", "disable")


@dataclass(frozen=True, slots=True, kw_only=True)
class NvidiaAdmission:
    """What the webhook has to know of NVIDIA's devices; an empty resource is one that pods cannot request.

    Attributes:
        count: the resource that is the number of cards.
        memory: MiB of each card.
        memory_percent: percent of the memory of each card.
        cores: percent of the cores of each card.
        priority: becomes an environment variable.
        default_count: how many cards a container gets that requests memory or cores, and no number; 0: none.
        core_policy: becomes an environment variable of every container, if it is not the default one.
        runtime_class: of pods with cards that name none; empty: they get none.
        hides_cards: whether containers without cards are told not to see those of the node.
    """

    count: str = names.GPU
    memory: str = names.GPU_MEMORY
    memory_percent: str = names.GPU_MEMORY_PERCENT
    cores: str = names.GPU_CORES
    priority: str = names.GPU_PRIORITY
    default_count: int = 1
    core_policy: str = DEFAULT_POLICY
    runtime_class: str = ""
    hides_cards: bool = False


def _read_nvidia(section: Nvidia) -> NvidiaAdmission:
    """Read what the webhook has to know from HAMi's configuration."""
    return NvidiaAdmission(
        count=section.cards,
        memory=section.memory,
        memory_percent=section.memory_percent,
        cores=section.cores,
        priority=section.priority,
        default_count=section.default_count,
        core_policy=section.core_policy or DEFAULT_POLICY,
        runtime_class=section.runtime_class,
        hides_cards=section.hides_cards,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionSettings:
    """By what a pod is admitted.

    Attributes:
        scheduler_names: our names; pods with devices get the first one, if they have none of them.
        overwrites_default: whether pods with devices that name ``default-scheduler`` become ours.
        taken_over: other schedulers whose pods become ours, with devices and without.
        nvidia: what is known of NVIDIA's devices.
        devices: HAMi's configuration, for the devices of the other vendors.
        ways: by what requests for shares in neutral words may be served, as ``backends.WAYS``, the first choice first.
    """

    scheduler_names: tuple[str, ...] = (names.SCHEDULER,)
    overwrites_default: bool = True
    taken_over: tuple[str, ...] = ()
    nvidia: NvidiaAdmission = field(default_factory=NvidiaAdmission)
    devices: DeviceConfig = CHART
    ways: tuple[str, ...] = WAYS


def follow_devices(settings: AdmissionSettings, devices: DeviceSettings) -> AdmissionSettings:
    """Return the settings with what devices are configured with."""
    return replace(settings, nvidia=_read_nvidia(devices.config.nvidia), devices=devices.config)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceWebhookSettings:
    """The webhook for pods with devices.

    Attributes:
        serving: how it is served.
        admission: by what a pod is admitted.
    """

    serving: WebhookSettings = field(default_factory=WebhookSettings)
    admission: AdmissionSettings = field(default_factory=AdmissionSettings)


class Served(NamedTuple):
    """The one webhook that is served.

    Attributes:
        settings: how.
        for_queues: whether it answers for jobs and pods with a queue.
        for_devices: whether it answers for pods with devices.
    """

    settings: WebhookSettings
    for_queues: bool
    for_devices: bool

    def list_configurations(self) -> list[tuple[Kind, str]]:
        """List the configurations by which the API server calls it: their kinds and names."""
        name = self.settings.name
        of_queues = [(kinds.MUTATING_WEBHOOKS, name), (kinds.VALIDATING_WEBHOOKS, name)]
        of_devices = [(kinds.MUTATING_WEBHOOKS, f"{name}-devices")]
        return of_queues * self.for_queues + of_devices * self.for_devices
