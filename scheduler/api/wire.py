"""The parts of Kubernetes objects that Evenkeel reads, decoded straight from JSON.

A field that is not listed here costs nothing. Quantities stay texts until ``requests`` parses them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from scheduler.api.disks import Disks, Iscsi, Rbd
from scheduler.errors import Mistake

Quantities = dict[str, str | int | float]


class Wire(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    """Camel-case JSON; structs hold no cycles, so the collector need not look at them."""


class Owner(Wire):
    """``metadata.ownerReferences[]``."""

    kind: str = ""
    name: str = ""
    api_version: str = ""
    uid: str = ""
    controller: bool | None = None


class Meta(Wire):
    """``metadata``."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[Owner] | None = None


class GuardedMeta(Meta):
    """``metadata`` of an object that somebody may keep from going."""

    finalizers: list[str] | None = None


class Object(Wire, tag_field="kind", tag=True):
    """An object of the API. It is written with its kind, so that a log can hold objects of all kinds.

    The name of its class is its kind. The items of a list need not have the kind.
    """

    metadata: Meta = msgspec.field(default_factory=Meta)


class Resources(Wire):
    """``resources`` of a container or of a pod."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class Port(Wire):
    """A container port; only host ports matter."""

    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""


class Mount(Wire):
    """``volumeMounts[]`` of a container."""

    bind_mount_options: list[str] | None = None


class RestartRule(Wire):
    """``restartPolicyRules[]`` of a container."""

    action: str = ""


class Container(Wire):
    """A container or init container."""

    name: str = ""
    resources: Resources | None = None
    ports: list[Port] | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[RestartRule] | None = None
    volume_mounts: list[Mount] | None = None
    image: str = ""


class Toleration(Wire):
    """``spec.tolerations[]``."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class Expression(Wire):
    """One requirement of a selector."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class NodeTerm(Wire):
    """A NodeSelectorTerm: everything in it must hold."""

    match_expressions: list[Expression] | None = None
    match_fields: list[Expression] | None = None


class NodeTerms(Wire):
    """A NodeSelector: one of its terms must hold."""

    node_selector_terms: list[NodeTerm] | None = None


class PreferredNodeTerm(Wire):
    """A preferred term with its weight."""

    weight: int = 0
    preference: NodeTerm | None = None


class NodeAffinity(Wire):
    """``spec.affinity.nodeAffinity``."""

    required_during_scheduling_ignored_during_execution: NodeTerms | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredNodeTerm] | None = None


class LabelSelector(Wire):
    """A selector of pods or namespaces; an absent one and an empty one do not mean the same."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[Expression] | None = None


class PodTerm(Wire):
    """A PodAffinityTerm: which pods, and which label of nodes they must share with the node."""

    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class PreferredPodTerm(Wire):
    """A preferred term with its weight."""

    weight: int = 0
    pod_affinity_term: PodTerm = msgspec.field(default_factory=PodTerm)


class PodAffinity(Wire):
    """``podAffinity`` or ``podAntiAffinity``."""

    required_during_scheduling_ignored_during_execution: list[PodTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredPodTerm] | None = None


class Affinity(Wire):
    """``spec.affinity``."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Spread(Wire):
    """``spec.topologySpreadConstraints[]``."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class ImageVolume(Wire):
    """``spec.volumes[].image``."""

    reference: str = ""


class ClaimSource(Wire):
    """``spec.volumes[].persistentVolumeClaim``."""

    claim_name: str = ""


class Volume(Disks):
    """``spec.volumes[]``: only the kinds that tie a pod to nodes."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: dict[str, Any] | None = None
    rbd: Rbd | None = None
    iscsi: Iscsi | None = None
    image: ImageVolume | None = None

    @property
    def is_storage(self) -> bool:
        """Whether the volume is a claim or a disk: not an image, and not of a kind that every node has."""
        return bool(
            self.persistent_volume_claim
            or self.ephemeral is not None
            or self.gce_persistent_disk
            or self.aws_elastic_block_store
            or self.azure_disk
            or self.cinder
            or self.portworx_volume
            or self.rbd
            or self.iscsi
        )


class Gate(Wire):
    """``spec.schedulingGates[]``."""

    name: str = ""


class PodClaim(Wire):
    """``spec.resourceClaims[]``."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodSpec(Wire):
    """``spec`` of a pod."""

    node_name: str | None = None
    scheduler_name: str | None = None
    priority: int = 0
    preemption_policy: str = ""
    priority_class_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    containers: list[Container] = []
    init_containers: list[Container] | None = None
    overhead: Quantities | None = None
    resources: Resources | None = None
    host_network: bool = False
    host_users: bool | None = None
    scheduling_gates: list[Gate] | None = None
    topology_spread_constraints: list[Spread] | None = None
    volumes: list[Volume] | None = None
    resource_claims: list[PodClaim] | None = None
    scheduling_group: dict[str, Any] | None = None
    active_deadline_seconds: int | None = None


class ContainerStatus(Wire):
    """The traces of in-place resizing on a container."""

    name: str = ""
    allocated_resources: Quantities | None = None
    resources: Resources | None = None


class Condition(Wire):
    """``status.conditions[]``."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class PodClaimStatus(Wire):
    """``status.resourceClaimStatuses[]``: the claim that was made for an entry; no name where none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class PodExtendedClaim(Wire):
    """``status.extendedResourceClaimStatus``: the claim that stands for extended resources of the pod."""

    resource_claim_name: str = ""


class PodStatus(Wire):
    """``status`` of a pod."""

    phase: str = ""
    nominated_node_name: str = ""
    start_time: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    allocated_resources: Quantities | None = None
    resources: Resources | None = None
    resource_claim_statuses: list[PodClaimStatus] | None = None
    extended_resource_claim_status: PodExtendedClaim | None = None


class Pod(Object):
    """A pod.

    ``oversized`` is no field of the API: it names a field that was too large to decode, and was left out.
    """

    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)
    oversized: Mistake | None = msgspec.field(default=None, name="(oversized)")


class Taint(Wire):
    """``spec.taints[]`` of a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Wire):
    """``spec`` of a node."""

    unschedulable: bool = False
    taints: list[Taint] | None = None


class Image(Wire):
    """``status.images[]`` of a node: an image on the node, with all its names."""

    names: list[str] | None = None
    size_bytes: int = 0


class NodeStatus(Wire):
    """``status`` of a node."""

    allocatable: Quantities | None = None
    images: list[Image] | None = None
    declared_features: list[str] | None = None


class Node(Object):
    """A node."""

    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)
