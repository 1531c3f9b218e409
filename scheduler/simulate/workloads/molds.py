"""Makes pods from a template, with the names and owners that a controller gives."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import structs

from scheduler.api import wire
from scheduler.simulate.reading import objects
from scheduler.simulate.reading.priorities import Priorities
from scheduler.simulate.workloads.workload import Workload, prefix_errors

# The letters of generated names of the API server: no vowels, and no digits that look like them.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_NAME_MAX, _SUFFIX = 63, 5
_HASH = 10


def draw_letters(n: int, *words: object) -> str:
    """Draw this many letters, always the same for the same words."""
    digest = hashlib.sha256("\0".join(map(str, words)).encode()).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:n])


def hash_template(template: Mapping[str, Any]) -> str:
    """Hash a template to its ``pod-template-hash``."""
    return draw_letters(_HASH, json.dumps(template, sort_keys=True, default=str))


class Names:
    """Knows the names of pods that are taken, and makes new ones."""

    def __init__(self, pods: Iterable[wire.Pod]) -> None:
        """Start with the names of existing pods."""
        self._taken = {(pod.metadata.namespace, pod.metadata.name) for pod in pods}
        # How many names were tried for each base, so that a thousand alike pods do not try them all again.
        self._tries: Counter[tuple[str, str]] = Counter()

    def make_name(self, namespace: str, base: str) -> str:
        """Make a new name from ``base`` and five letters."""
        base = f"{base}-"[: _NAME_MAX - _SUFFIX]
        tries = self._tries[namespace, base]
        name = base + draw_letters(_SUFFIX, namespace, base, tries)
        while (namespace, name) in self._taken:
            tries += 1
            name = base + draw_letters(_SUFFIX, namespace, base, tries)
        self._tries[namespace, base] = tries + 1
        self._taken.add((namespace, name))
        return name


class Mold:
    """Makes the pods of one template.

    Attributes:
        pod: the template, with what admission fills in.
    """

    def __init__(self, workload: Workload, priorities: Priorities) -> None:
        """Read the template of a workload.

        Raises:
            BadInput: the template cannot be read; names the field.
        """
        template = objects.find_mapping({"spec": workload.spec}, "spec", "template")
        with prefix_errors(workload.template):
            self.pod = objects.admit_pod(template, priorities)
        self._workload = workload

    def make_pod(
        self,
        name: str,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        owner: wire.Owner | None = None,
        spec: wire.PodSpec | None = None,
    ) -> wire.Pod:
        """Make a pod.

        Args:
            name: the name of the pod.
            labels: labels beside those of the template.
            annotations: annotations beside those of the template.
            owner: the owner, if it is not the workload.
            spec: the spec, if it is not that of the template.
        """
        meta, namespace = self.pod.metadata, self._workload.key.namespace
        made = wire.Meta(
            name=name,
            namespace=namespace,
            uid=f"{namespace}/{name}",
            creation_timestamp=objects.NOT_YET,
            labels={**meta.labels, **(labels or {})} if meta.labels else dict(labels or {}),
            annotations={**(meta.annotations or {}), **(annotations or {})},
            owner_references=[owner or self._workload.owner],
        )
        return structs.replace(self.pod, metadata=made, spec=spec or self.pod.spec)
