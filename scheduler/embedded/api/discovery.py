"""What clients ask first: groups, resources, versions, and just enough OpenAPI for kubectl."""

from typing import Any

from scheduler.embedded.store.kinds import ALL_VERBS, Kind, Kinds

Json = dict[str, Any]

VERSION: Json = {
    "major": "1",
    "minor": "37",
    "gitVersion": "v1.37.0-embedded",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "python",
}

# Kinds whose objects are only posted and never stored: (group, version, plural, kind, namespaced).
REVIEWS = (
    ("", "v1", "bindings", "Binding", True),
    ("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False),
    ("authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", False),
    ("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False),
    ("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False),
)


def find_document(kinds: Kinds, path: str, *, aggregated: str = "") -> Json | None:
    """Return the document at a path, or None if there is none.

    ``aggregated`` is the version of the aggregated form, if the client asked for that.
    """
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["openapi"]:
        return _find_openapi(kinds, parts[1:])
    if parts == ["version"]:
        return VERSION
    if aggregated and len(parts) == 1:
        return _aggregate(kinds, aggregated, core=parts == ["api"])
    return _find_classic(kinds, parts)


def _find_classic(kinds: Kinds, parts: list[str]) -> Json | None:
    document: Json | None = None
    match parts:
        case ["api"]:
            address = {"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}
            document = {
                "kind": "APIVersions",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": [address],
            }
        case ["apis"]:
            document = {"kind": "APIGroupList", "apiVersion": "v1", "groups": _list_groups(kinds)}
        case ["api", version]:
            document = _find_resources(kinds, "", version)
        case ["apis", group]:
            found = [one for one in _list_groups(kinds) if one["name"] == group]
            document = {"kind": "APIGroup", "apiVersion": "v1", **found[0]} if found else None
        case ["apis", group, version]:
            document = _find_resources(kinds, group, version)
    return document


def _list_all(kinds: Kinds) -> dict[tuple[str, str], list[Json]]:
    """Return the entries of every group and version, in the classic form."""
    found = {
        path: [entry for kind in listed for entry in _list_entries(kind)]
        for path, listed in kinds.list_versions().items()
    }
    for group, version, plural, kind, namespaced in REVIEWS:
        found.setdefault((group, version), []).append(
            {
                "name": plural,
                "singularName": kind.lower(),
                "namespaced": namespaced,
                "kind": kind,
                "verbs": ["create"],
            }
        )
    return found


def _list_entries(kind: Kind) -> list[Json]:
    entry: Json = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(ALL_VERBS),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    entries = [entry]
    head = {"singularName": "", "namespaced": kind.namespaced}
    if kind.has_status:
        verbs = ["get", "patch", "update"]
        name = f"{kind.plural}/status"
        entries.append({"name": name, **head, "kind": kind.kind, "verbs": verbs})
    if kind.has_scale:
        scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        verbs = ["get", "patch", "update"]
        entries.append({"name": f"{kind.plural}/scale", **head, **scale, "verbs": verbs})
    if kind.resource == "pods":
        for name, one, group in (("binding", "Binding", ""), ("eviction", "Eviction", "policy")):
            entry = {"name": f"pods/{name}", **head, "kind": one, "verbs": ["create"]}
            entries.append({**entry, "group": group, "version": "v1"} if group else entry)
    return entries


def _list_groups(kinds: Kinds) -> list[Json]:
    versions: dict[str, list[str]] = {}
    for group, version in _list_all(kinds):
        if group:
            versions.setdefault(group, []).append(version)
    groups = []
    for group, listed in versions.items():
        entries = [
            {"groupVersion": f"{group}/{version}", "version": version}
            for version in sorted(listed, key=_rank_version)
        ]
        groups.append({"name": group, "versions": entries, "preferredVersion": entries[0]})
    return groups


def _rank_version(version: str) -> tuple[int, str]:
    """Order versions by stability: v1 before v1beta1 before v1alpha1."""
    return (2 if "alpha" in version else 1 if "beta" in version else 0, version)


def _find_resources(kinds: Kinds, group: str, version: str) -> Json | None:
    entries = _list_all(kinds).get((group, version))
    if entries is None:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": entries,
    }


def _aggregate(kinds: Kinds, form: str, *, core: bool) -> Json:
    groups: dict[str, list[Json]] = {}
    for (group, version), entries in _list_all(kinds).items():
        if (group == "") is core:
            document = {
                "version": version,
                "resources": _nest(group, version, entries),
                "freshness": "Current",
            }
            groups.setdefault(group, []).append(document)
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{form}",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": group} if group else {},
                "versions": sorted(versions, key=lambda one: _rank_version(one["version"])),
            }
            for group, versions in groups.items()
        ],
    }


def _nest(group: str, version: str, entries: list[Json]) -> list[Json]:
    """Turn the classic entries into the aggregated form, subresources under their resource."""
    resources: dict[str, Json] = {}
    for entry in entries:
        name, _, subresource = entry["name"].partition("/")
        kind = {
            "group": entry.get("group", group),
            "version": entry.get("version", version),
            "kind": entry["kind"],
        }
        if subresource:
            below = {"subresource": subresource, "responseKind": kind, "verbs": entry["verbs"]}
            resources[name].setdefault("subresources", []).append(below)
            continue
        resources[name] = {
            "resource": name,
            "responseKind": kind,
            "scope": "Namespaced" if entry["namespaced"] else "Cluster",
            "singularResource": entry["singularName"],
            "verbs": entry["verbs"],
        }
        for field in ("shortNames", "categories"):
            if field in entry:
                resources[name][field] = entry[field]
    return list(resources.values())


def _find_openapi(kinds: Kinds, rest: list[str]) -> Json | None:
    """Return the index, or the stub of one group and version.

    kubectl looks for one thing only: a PATCH operation of the kind that takes ``fieldValidation``. It shows that the
    server validates, so that kubectl need not.
    """
    if rest == ["v2"]:
        info = {"title": "Kubernetes", "version": VERSION["gitVersion"]}
        return {"swagger": "2.0", "info": info, "paths": {}, "definitions": {}}
    if rest[:1] != ["v3"]:
        return None
    rest = rest[1:]
    versions = kinds.list_versions()
    if not rest:
        paths = {}
        for group, version in versions:
            name = f"apis/{group}/{version}" if group else f"api/{version}"
            paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}"}
        return {"paths": paths}
    group, version = (rest[1], rest[2]) if len(rest) == 3 else ("", rest[-1])
    listed = versions.get((group, version))
    if listed is None:
        return None
    operations = {}
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    for kind in listed:
        place = "namespaces/{namespace}/" if kind.namespaced else ""
        operations[f"{root}/{place}{kind.plural}/{{name}}"] = {"patch": _make_patch_operation(kind)}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
        "paths": operations,
        "components": {"schemas": {}},
    }


def _make_patch_operation(kind: Kind) -> Json:
    return {
        "parameters": [
            {
                "name": "fieldValidation",
                "in": "query",
                "schema": {"type": "string", "uniqueItems": True},
            }
        ],
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": {
            "group": kind.group,
            "version": kind.version,
            "kind": kind.kind,
        },
        "responses": {"200": {"description": "OK"}},
    }
