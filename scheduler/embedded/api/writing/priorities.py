"""The two PriorityClasses that every cluster has."""

from scheduler.embedded.api.admission.pods import BUILT_IN_CLASSES
from scheduler.embedded.api.writing.registry import Registry
from scheduler.embedded.store.builtin import BUILT_IN

_KIND = next(kind for kind in BUILT_IN if kind.plural == "priorityclasses")
_DESCRIPTIONS = {
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to another"
        " node if necessary."
    ),
    "system-node-critical": (
        "Used for system critical pods that must not be moved from their current node."
    ),
}


def seed_classes(registry: Registry) -> None:
    """Create the built-in classes."""
    for name, value in BUILT_IN_CLASSES.items():
        body = {"metadata": {"name": name}, "value": value, "description": _DESCRIPTIONS[name]}
        registry.create(_KIND, "", body)
