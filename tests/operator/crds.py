"""How an API server serves the kinds that say which pods are groups: switches for Kubernetes' own, CRDs for the others."""

from __future__ import annotations

from typing import Any

from scheduler.api import kinds
from scheduler.api.groups.objects import GROUP_KINDS, TOPOLOGY_KINDS
from scheduler.api.kind import Kind

Json = dict[str, Any]
GATES = ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")
GATES_FLAG = f"--feature-gates={','.join(f'{gate}=true' for gate in GATES)}"
FLAGS = (
    GATES_FLAG,
    "--runtime-config=scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true",
)
# Kubernetes serves these itself, where they are switched on.
_BUILT_IN = frozenset({"scheduling.k8s.io", "batch"})


def list_group_kinds() -> list[Kind]:
    """The kinds of groups and topologies that other systems bring along."""
    found = [kinds.BY_NAME[name] for name in (*GROUP_KINDS, *TOPOLOGY_KINDS)]
    return [kind for kind in found if kind.group not in _BUILT_IN]


def make_crd(kind: Kind) -> Json:
    """A CRD that takes any spec and any status."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{kind.group}",
            # Groups that end like Kubernetes' own need a word of approval.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.is_namespaced else "Cluster",
            "names": {
                "plural": kind.plural,
                "singular": kind.kind.lower(),
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
            },
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }
