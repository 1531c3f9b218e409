"""All settings, with every default, frozen and checked once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from scheduler.api import metrics_settings, names, placement, selector_text, values
from scheduler.api.admission import configuration as admission
from scheduler.api.admission.settings import DeviceWebhookSettings, Served
from scheduler.api.groups.settings import GroupSettings
from scheduler.api.groups.table import OWNER_KINDS
from scheduler.api.hami_config import maps
from scheduler.api.kubescheduler import file as kube_file
from scheduler.api.limits import PodLimits
from scheduler.api.metrics_settings import MetricsConfig
from scheduler.api.placement import Mode, Placement
from scheduler.api.queues import configuration
from scheduler.api.queues.settings import QueueSettings
from scheduler.documents import reading
from scheduler.errors import BadInput, explain_unreadable, join_lines

# A scheduler's name stands in field selectors, which have no way to quote.
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9._]{0,251}[A-Za-z0-9])?")
_OF_PROFILES = ("schedulerName", "placement", "modeWeight", "preemption")
_RESOURCE = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/([-\w.]+\*?|\*)", re.ASCII)
_LABEL = re.compile(r"([a-zA-Z0-9._-]+/)?[a-zA-Z0-9._-]+(=[a-zA-Z0-9._-]*)?|")


@dataclass(frozen=True, slots=True)
class Profile:
    """What holds for the pods of one scheduler name.

    Attributes:
        scheduler_name: pods with this ``spec.schedulerName`` are ours.
        placement: theirs, where neither an annotation nor a BalancePolicy steers them.
        preemption: the pods may take the place of pods of lower priority.
    """

    scheduler_name: str
    placement: Placement
    preemption: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the configuration file may set.

    Attributes:
        scheduler_name, placement, preemption: the first profile, see ``Profile``.
        profiles: further ones; no name appears twice.
        ageing_per_hour: the priority that a waiting pod or group gains in each hour, in the order of the queue.
        backoff_seconds, backoff_max_seconds: a pod that failed waits this long, doubling up to the most.
        binds_in_flight, slice_pods: requests to the API server at once; most pods decided between two looks at the streams.
        hami_node_label: key=value, or a key, of the nodes on which HAMi's device plugin runs; empty for none.
        hami_scheduler_nodes: label selector of the nodes on which HAMi's own scheduler allocates; empty for none.
        hami_config_map, hami_plugin_config_map: namespace/name of what configures HAMi; empty: as by HAMi's chart.
        trust_claims: what a running pod holds of cards is what its annotations say, even if that is more than it requests.
        publish_parts: nodes get what their cards have together of memory and cores as resources, for autoscalers.
        gpu_resources: resources by which nodes offer GPUs that nobody counts, ``*`` for any end.
        card_probation_seconds: for so long no new pod gets a card that was ill.
        lock_timeout_seconds: the age that ends a HAMi node lock that nothing else can end.
        role_label: key of the label on the pods of replicas that says which of them decides; empty for none.
        pod_limits, metrics: how much one pod may say, see ``api/limits.py``; how much the metrics tell.
        groups, queues: which pods are groups, and which levels the cluster has; which queues are managed, and how they share.
        device_webhook: the webhook for pods with devices; None: it does not look at devices.
    """

    scheduler_name: str = names.SCHEDULER
    placement: Placement = field(default_factory=Placement)
    preemption: bool = True
    profiles: tuple[Profile, ...] = ()
    ageing_per_hour: float = 0.0
    backoff_seconds: float = 1.0
    backoff_max_seconds: float = 10.0
    binds_in_flight: int = 32
    slice_pods: int = 64
    hami_node_label: str = names.HAMI_NODE_LABEL
    hami_scheduler_nodes: str = ""
    hami_config_map: str = ""
    hami_plugin_config_map: str = ""
    trust_claims: bool = True
    publish_parts: bool = False
    gpu_resources: tuple[str, ...] = ()
    card_probation_seconds: float = 60.0
    lock_timeout_seconds: float = 300.0
    pod_limits: PodLimits = field(default_factory=PodLimits)
    role_label: str = ""
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    groups: GroupSettings = field(default_factory=GroupSettings)
    queues: QueueSettings = field(default_factory=QueueSettings)
    device_webhook: DeviceWebhookSettings | None = None

    @property
    def scheduler_names(self) -> tuple[str, ...]:
        """The names by which pods are ours."""
        return (self.scheduler_name, *(one.scheduler_name for one in self.profiles))

    @property
    def config_maps(self) -> tuple[str, ...]:
        """The ConfigMaps that are read, as namespace/name."""
        named = self.hami_config_map, self.hami_plugin_config_map
        return tuple(dict.fromkeys(one for one in named if one))

    @property
    def kube_names(self) -> tuple[str, ...]:
        """The names whose pods are placed by kube-scheduler's rules."""
        profiles = map(self.profile, self.scheduler_names)
        return tuple(
            one.scheduler_name for one in profiles if one.placement.mode == Mode.KUBE_SCHEDULER
        )

    @property
    def webhook(self) -> Served | None:
        """The webhook that is served, whatever it is for; None for none."""
        of_queues, of_devices = self.queues.webhook, self.device_webhook
        settings = of_queues or (of_devices.serving if of_devices is not None else None)
        if settings is None:
            return None
        return Served(settings, of_queues is not None, of_devices is not None)

    def profile(self, scheduler_name: str) -> Profile:
        """Return the profile of a name; the first profile for a name that is not ours."""
        for one in self.profiles:
            if one.scheduler_name == scheduler_name:
                return one
        return Profile(self.scheduler_name, self.placement, self.preemption)


def load_config(path: Path | None) -> Config:
    """Read the configuration from a YAML file; without a file, return the defaults.

    A file that says what kind it is is one of kube-scheduler's, see ``api/kubescheduler``. Evenkeel's own has the
    camel-case names of ``Config``'s fields, ``placement`` with the fields of a BalancePolicy's spec (scoring,
    nodePolicy, gpuPolicy), ``modeWeight``, which is part of the placement too, ``preemption``, ``podLimits`` with the
    fields of ``PodLimits``, ``metrics`` with those of ``MetricsConfig`` and ``groups`` with those of ``GroupSettings``. Each of ``profiles`` has a
    ``schedulerName`` and may have a ``placement``, a ``modeWeight`` and a ``preemption``; what it does not say is as
    in the first profile.

    Raises:
        BadInput: a field is unknown or not what is allowed; names it.
    """
    if path is None:
        return Config()
    try:
        raw = reading.read_first(reading.decode(path.read_bytes())) or {}
    except (OSError, UnicodeError) as error:
        raise BadInput("file", explain_unreadable(error)) from error
    except ValueError as error:
        raise BadInput("YAML", join_lines(error)) from error
    return parse_config(raw)


def parse_config(raw: Any) -> Config:
    """Make a configuration of plain values.

    Raises:
        BadInput: as ``load_config``.
    """
    if not isinstance(raw, Mapping):
        raise BadInput("file", "must hold a mapping of settings")
    if kube_file.is_kube_file(raw):
        return _convert_kube_file(kube_file.read_file(raw))
    known = {values.write_camel(f.name): f.name for f in fields(Config)}
    allowed = sorted([*known, "modeWeight"])
    unknown = next((key for key in raw if key not in allowed), None)
    if unknown is not None:
        raise BadInput(str(unknown), f"unknown setting; allowed are {', '.join(allowed)}")
    first = _parse_profile(raw, "", Profile(names.SCHEDULER, Placement()))
    changes: dict[str, Any] = {
        "scheduler_name": first.scheduler_name,
        "placement": first.placement,
        "preemption": first.preemption,
    }
    for key, given in raw.items():
        if key in _OF_PROFILES:
            continue
        if key == "profiles":
            changes["profiles"] = _parse_further(given, first)
        elif key in _READ:
            changes[known[key]] = _READ[key](given)
        else:
            changes[known[key]] = _parse_number(key, given, getattr(Config(), known[key]))
    made = Config(**changes)
    _refuse_two_webhooks(made)
    if made.hami_config_map and "nvidia" in (raw.get("deviceWebhook") or {}):
        raise BadInput("deviceWebhook.nvidia", "hamiConfigMap says the same; leave one of them out")
    return made


def _refuse_two_webhooks(config: Config) -> None:
    """Refuse a webhook for devices that would be another one than that for queues: there is one server."""
    of_queues, of_devices = config.queues.webhook, config.device_webhook
    if of_queues is None or of_devices is None:
        return
    for one in fields(of_queues):
        ours, theirs = (getattr(given, one.name) for given in (of_devices.serving, of_queues))
        if ours != theirs:
            problem = f"{values.quote(ours)} is not that of queues.webhook, {values.quote(theirs)}: one server serves both"
            raise BadInput(f"deviceWebhook.{one.name}", problem)


def _convert_kube_file(given: kube_file.KubeFile) -> Config:
    """Make a configuration of a file of kube-scheduler; what the file does not say is as by default."""
    profiles = tuple(
        Profile(
            _parse_name(one.scheduler_name, f"profiles[{i}]."),
            Placement(mode=Mode.KUBE_SCHEDULER, plugins=one.plugins),
            one.preemption,
        )
        for i, one in enumerate(given.profiles)
    )
    return Config(
        scheduler_name=profiles[0].scheduler_name,
        placement=profiles[0].placement,
        preemption=profiles[0].preemption,
        profiles=profiles[1:],
        backoff_seconds=given.backoff,
        backoff_max_seconds=given.backoff_max,
    )


def _parse_further(given: Any, first: Profile) -> tuple[Profile, ...]:
    if not isinstance(given, list):
        raise BadInput("profiles", "must be a list")
    found: list[Profile] = []
    taken = {first.scheduler_name}
    for i, one in enumerate(given):
        where = f"profiles[{i}]"
        raw = values.read_mapping(one, where)
        values.refuse_unknown(raw, where, _OF_PROFILES)
        if "schedulerName" not in raw:
            raise BadInput(f"{where}.schedulerName", "is required")
        profile = _parse_profile(raw, f"{where}.", first)
        if profile.scheduler_name in taken:
            raise BadInput(f"{where}.schedulerName", f'"{profile.scheduler_name}" appears twice')
        taken.add(profile.scheduler_name)
        found.append(profile)
    return tuple(found)


def _parse_profile(raw: Mapping[str, Any], where: str, default: Profile) -> Profile:
    name = _parse_name(raw.get("schedulerName", default.scheduler_name), where)
    placed = default.placement
    if "placement" in raw:
        parsed = placement.read_fields(raw["placement"], f"{where}placement")
        placed = replace(Placement(mode_weight=placed.mode_weight), **parsed)
    if "modeWeight" in raw:
        weight = values.read_integer(
            raw["modeWeight"], f"{where}modeWeight", 1, placement.WEIGHT_MAX
        )
        placed = replace(placed, mode_weight=weight)
    preemption = raw.get("preemption", default.preemption)
    return Profile(name, placed, values.read_flag(preemption, f"{where}preemption"))


def _parse_name(given: Any, where: str) -> str:
    if not isinstance(given, str) or not _NAME.fullmatch(given):
        raise BadInput(
            f"{where}schedulerName",
            f"{given!r} is not a name: letters, digits, '-', '.' and '_', at most 253",
        )
    return given


def _parse_pod_limits(given: Any) -> PodLimits:
    bounds = values.read_mapping(given, "podLimits")
    values.refuse_unknown(bounds, "podLimits", tuple(f.name for f in fields(PodLimits)))
    return PodLimits(
        **{k: values.read_integer(n, f"podLimits.{k}", 1, 2**31 - 1) for k, n in bounds.items()}
    )


def _parse_groups(given: Any) -> GroupSettings:
    settings = values.read_mapping(given, "groups")
    lists = ("owners", "topology")
    values.refuse_unknown(settings, "groups", (*lists, "promisedPercent", "kueueBalancedPlacement"))
    changes: dict[str, Any] = {
        key: tuple(values.read_items(settings[key], f"groups.{key}", str))
        for key in lists
        if key in settings
    }
    if "promisedPercent" in settings:
        percent = settings["promisedPercent"]
        changes["promised_percent"] = values.read_integer(percent, "groups.promisedPercent", 0, 100)
    balances = settings.get("kueueBalancedPlacement", False)
    changes["kueue_balanced_placement"] = values.read_flag(
        balances, "groups.kueueBalancedPlacement"
    )
    for i, label in enumerate(changes.get("topology", ())):
        if not label or not _LABEL.fullmatch(label) or "=" in label:
            raise BadInput(f"groups.topology[{i}]", f"{label!r} is not the key of a label")
    for i, kind in enumerate(changes.get("owners", ())):
        if kind not in OWNER_KINDS:
            allowed = ", ".join(OWNER_KINDS)
            raise BadInput(f"groups.owners[{i}]", f"{kind!r} is not one of {allowed}")
    return GroupSettings(**changes)


def _parse_number(key: str, given: Any, default: float) -> int | float:
    wanted = (int,) if isinstance(default, int) else (int, float)
    # Neither .inf nor .nan is within: no comparison holds for nan.
    if not isinstance(given, wanted) or isinstance(given, bool) or not 0 < given < 2**31:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise BadInput(key, f"{given!r} is not {kind} above 0")
    return type(default)(given)


def _parse_amount(given: Any, field: str) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < 2**31:
        raise BadInput(field, f"{given!r} is not a number of at least 0")
    return float(given)


def _parse_label(given: Any) -> str:
    if not isinstance(given, str) or not _LABEL.fullmatch(given):
        raise BadInput("hamiNodeLabel", f'{given!r} is neither "key=value" nor "key" nor empty')
    return given


def _parse_key(given: Any) -> str:
    if not isinstance(given, str) or not _LABEL.fullmatch(given) or "=" in given:
        raise BadInput("roleLabel", f"{given!r} is neither the key of a label nor empty")
    return given


def _parse_resources(given: Any) -> tuple[str, ...]:
    found = values.read_items(given, "gpuResources", str)
    for i, one in enumerate(found):
        if not _RESOURCE.fullmatch(one):
            raise BadInput(
                f"gpuResources[{i}]",
                f'{one!r} is not a resource such as "example.com/gpu", with or without "*" at its end',
            )
    return tuple(found)


# How settings are read that are neither numbers nor parts of profiles.
_READ: dict[str, Callable[[Any], Any]] = {
    "podLimits": _parse_pod_limits,
    "metrics": metrics_settings.read_settings,
    "groups": _parse_groups,
    "queues": configuration.read_settings,
    "deviceWebhook": admission.read_settings,
    "ageingPerHour": partial(_parse_amount, field="ageingPerHour"),
    "cardProbationSeconds": partial(_parse_amount, field="cardProbationSeconds"),
    "hamiNodeLabel": _parse_label,
    "hamiSchedulerNodes": partial(selector_text.check_text, field="hamiSchedulerNodes"),
    "hamiConfigMap": partial(maps.read_reference, field="hamiConfigMap"),
    "hamiPluginConfigMap": partial(maps.read_reference, field="hamiPluginConfigMap"),
    "publishParts": partial(values.read_flag, field="publishParts"),
    "trustClaims": partial(values.read_flag, field="trustClaims"),
    "roleLabel": _parse_key,
    "gpuResources": _parse_resources,
}
