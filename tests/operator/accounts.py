"""ServiceAccounts with the rights that a test gives them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tests.controlplane import plane

Json = dict[str, Any]


def make_account(name: str, namespace: str, *rules: Json, namespaced: bool = False) -> list[Json]:
    """A ServiceAccount with a role, in the whole cluster or in its namespace."""
    scope = "" if namespaced else "Cluster"
    group = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    meta = {"name": name} | ({"namespace": namespace} if namespaced else {})
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": f"{scope}Role", "name": name}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    account = {"name": name, "namespace": namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
        {**group, "kind": f"{scope}Role", "metadata": meta, "rules": list(rules)},
        {**group, "kind": f"{scope}RoleBinding", "metadata": meta, "roleRef": ref, "subjects": [subject]},
    ]  # fmt: skip


def make_rule(verbs: str, resources: str, group: str = "") -> Json:
    """A rule of a role; verbs and resources by spaces."""
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}


def apply(cp: plane.ControlPlane, made: Iterable[Json]) -> None:
    """Create them on an API server."""
    listed = {"apiVersion": "v1", "kind": "List", "items": list(made)}
    cp.kubectl("apply", "-f", "-", stdin=json.dumps(listed))
