"""CustomResourceDefinitions as data: their defaults, their problems, and the kinds they define."""

from typing import Any

from scheduler.embedded.store.kinds import Kind
from scheduler.embedded.store.statuses import Cause, invalid_value, required

Json = dict[str, Any]


def find_problems(body: Json) -> list[Cause]:
    """Return what is wrong with a CRD: it names itself wrongly or has no schema."""
    spec, name = body.get("spec") or {}, (body.get("metadata") or {}).get("name", "")
    names = spec.get("names") or {}
    causes: list[Cause] = [
        required(f"spec.{field}") for field in ("group", "scope", "versions") if not spec.get(field)
    ]
    causes += [
        required(f"spec.names.{field}") for field in ("plural", "kind") if not names.get(field)
    ]
    wanted = f"{names.get('plural')}.{spec.get('group')}"
    if not causes and name != wanted:
        text = 'must be spec.names.plural+"."+spec.group'
        causes.append(invalid_value("metadata.name", name, text))
    for index, version in enumerate(spec.get("versions") or ()):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if not schema:
            where = f"spec.versions[{index}].schema.openAPIV3Schema"
            causes.append(required(where))
    return causes


def has_rules(part: Any) -> bool:
    """Tell whether a part of a CRD holds rules in CEL."""
    if isinstance(part, dict):
        return "x-kubernetes-validations" in part or any(map(has_rules, part.values()))
    return isinstance(part, list) and any(map(has_rules, part))


def fill_in(body: Json) -> None:
    """Set the defaults of a CRD."""
    spec = body.setdefault("spec", {})
    names = spec.setdefault("names", {})
    if names.get("kind"):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")
    spec.setdefault("conversion", {"strategy": "None"})


def make_kinds(body: Json) -> list[Kind]:
    """Return a kind for each served version of a CRD."""
    spec = body["spec"]
    names = spec["names"]
    return [
        Kind(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            kind=names["kind"],
            namespaced=spec["scope"] == "Namespaced",
            singular=names.get("singular", ""),
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            has_status="status" in (version.get("subresources") or {}),
            has_generation=True,
            unconditional_update=False,
            fields=tuple(
                field["jsonPath"].lstrip(".") for field in version.get("selectableFields") or ()
            ),
            schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
            columns=tuple(version.get("additionalPrinterColumns") or ()),
            has_rules=has_rules(version),
            custom=True,
        )
        # The storage version first: it is the main one of the bucket.
        for version in sorted(spec["versions"], key=lambda one: not one.get("storage"))
        if version.get("served")
    ]
