"""The parts of the objects of ``resource.k8s.io/v1`` that Evenkeel reads."""

from __future__ import annotations

from typing import Any

import msgspec

from scheduler.api.wire import GuardedMeta, Meta, NodeTerms, Object, Toleration, Wire

Quantity = str | int | float
# Before a claim is allocated it gets this finalizer, in a write of its own.
FINALIZER = "resource.kubernetes.io/delete-protection"


class Attribute(Wire):
    """A value of ``attributes``: exactly one of the fields is set."""

    int_: int | None = msgspec.field(default=None, name="int")
    bool_: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None
    version: str | None = None
    ints: list[int] | None = None
    bools: list[bool] | None = None
    strings: list[str] | None = None
    versions: list[str] | None = None


class ValidRange(Wire):
    """``requestPolicy.validRange``."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class RequestPolicy(Wire):
    """``requestPolicy`` of a capacity: which amounts a request may consume."""

    default: Quantity | None = None
    valid_values: list[Quantity] | None = None
    valid_range: ValidRange | None = None


class Capacity(Wire):
    """A value of ``capacity``."""

    value: Quantity = 0
    request_policy: RequestPolicy | None = None


class Counter(Wire):
    """A value of ``counters``."""

    value: Quantity = 0


class CounterSet(Wire):
    """``sharedCounters[]``: what all devices of a pool draw on together."""

    name: str = ""
    counters: dict[str, Counter] = msgspec.field(default_factory=dict)


class CounterUse(Wire):
    """``consumesCounters[]``: what a device draws while it is allocated."""

    counter_set: str = ""
    counters: dict[str, Counter] = msgspec.field(default_factory=dict)
    compatibility_groups: list[str] | None = None


class DeviceTaint(Wire):
    """``taints[]`` of a device, and ``taint`` of a rule."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Device(Wire):
    """``devices[]``."""

    name: str = ""
    attributes: dict[str, Attribute] | None = None
    capacity: dict[str, Capacity] | None = None
    consumes_counters: list[CounterUse] | None = None
    taints: list[DeviceTaint] | None = None
    node_name: str | None = None
    node_selector: NodeTerms | None = None
    all_nodes: bool | None = None
    binds_to_node: bool = False
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    allow_multiple_allocations: bool = False


class Pool(Wire):
    """``spec.pool``."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class SliceSpec(Wire):
    """``spec`` of a ResourceSlice."""

    driver: str = ""
    pool: Pool = msgspec.field(default_factory=Pool)
    node_name: str | None = None
    node_selector: NodeTerms | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: list[Device] | None = None
    shared_counters: list[CounterSet] | None = None


class ResourceSlice(Object):
    """Devices, or counters, of a pool of a driver."""

    spec: SliceSpec = msgspec.field(default_factory=SliceSpec)


class CelSelector(Wire):
    """``cel`` of a selector."""

    expression: str = ""


class DeviceSelector(Wire):
    """``selectors[]``."""

    cel: CelSelector | None = None


class OpaqueConfig(Wire):
    """``opaque`` of a configuration: what a driver gets to read."""

    driver: str = ""
    parameters: Any = None


class ClassConfig(Wire):
    """``config[]`` of a DeviceClass."""

    opaque: OpaqueConfig | None = None


class ClassSpec(Wire):
    """``spec`` of a DeviceClass."""

    selectors: list[DeviceSelector] | None = None
    config: list[ClassConfig] | None = None
    extended_resource_name: str | None = None


class DeviceClass(Object):
    """A kind of devices that claims may request."""

    spec: ClassSpec = msgspec.field(default_factory=ClassSpec)


class TaintSelector(Wire):
    """``spec.deviceSelector`` of a rule; what is not given does not matter."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class TaintRuleSpec(Wire):
    """``spec`` of a DeviceTaintRule."""

    device_selector: TaintSelector | None = None
    taint: DeviceTaint = msgspec.field(default_factory=DeviceTaint)


class DeviceTaintRule(Object):
    """A taint that an administrator gives to devices."""

    spec: TaintRuleSpec = msgspec.field(default_factory=TaintRuleSpec)


class DeviceToleration(Toleration):
    """``tolerations[]`` of a request."""

    toleration_seconds: int | None = None


class CapacityRequests(Wire):
    """``capacity`` of a request."""

    requests: dict[str, Quantity] | None = None


class ExactRequest(Wire):
    """``exactly`` of a request, and, with a name, one of ``firstAvailable``."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] | None = None
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] | None = None
    capacity: CapacityRequests | None = None
    derived_attributes: Any = None


class DeviceRequest(Wire):
    """``requests[]``."""

    name: str = ""
    exactly: ExactRequest | None = None
    first_available: list[ExactRequest] | None = None


class DeviceConstraint(Wire):
    """``constraints[]``."""

    requests: list[str] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class ClaimConfig(Wire):
    """``config[]`` of a claim."""

    requests: list[str] | None = None
    opaque: OpaqueConfig | None = None


class DeviceClaim(Wire):
    """``spec.devices``."""

    requests: list[DeviceRequest] | None = None
    constraints: list[DeviceConstraint] | None = None
    config: list[ClaimConfig] | None = None


class ClaimSpec(Wire):
    """``spec`` of a ResourceClaim."""

    devices: DeviceClaim = msgspec.field(default_factory=DeviceClaim)


class AllocatedDevice(Wire):
    """``status.allocation.devices.results[]``."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] | None = None


class AllocatedDevices(Wire):
    """``status.allocation.devices``."""

    results: list[AllocatedDevice] | None = None


class Allocation(Wire):
    """``status.allocation``."""

    devices: AllocatedDevices = msgspec.field(default_factory=AllocatedDevices)
    node_selector: NodeTerms | None = None


class Consumer(Wire):
    """``status.reservedFor[]``."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(Wire):
    """``status.devices[].conditions[]``."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class DeviceStatus(Wire):
    """``status.devices[]``: what a driver says of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: list[DeviceCondition] | None = None


class ClaimStatus(Wire):
    """``status`` of a ResourceClaim."""

    allocation: Allocation | None = None
    reserved_for: list[Consumer] | None = None
    devices: list[DeviceStatus] | None = None


class ResourceClaim(Object):
    """A request for devices, and what it got."""

    metadata: GuardedMeta = msgspec.field(default_factory=GuardedMeta)
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)
    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)


class TemplateSpec(Wire):
    """``spec`` of a ResourceClaimTemplate."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)


class ResourceClaimTemplate(Object):
    """A template from which a controller makes a claim for each pod."""

    spec: TemplateSpec = msgspec.field(default_factory=TemplateSpec)


DeviceObject = ResourceSlice | DeviceClass | DeviceTaintRule | ResourceClaim
# By the names of their kinds.
KINDS: dict[str, type[DeviceObject]] = {
    str(one.__struct_config__.tag): one
    for one in (ResourceSlice, DeviceClass, DeviceTaintRule, ResourceClaim)
}
