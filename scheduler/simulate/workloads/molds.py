"""Pods from one template, with the names and owners that a controller gives."""

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
from scheduler.simulate.workloads.workload import Workload, below

# Without vowels and what looks like them, as the API server makes names up.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_NAME_MAX, _SUFFIX = 63, 5
_HASH = 10


def letters(n: int, *words: object) -> str:
    """This many letters, always the same for the same words."""
    digest = hashlib.sha256("\0".join(map(str, words)).encode()).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:n])


def hash_of(template: Mapping[str, Any]) -> str:
    """The ``pod-template-hash`` of a template."""
    return letters(_HASH, json.dumps(template, sort_keys=True, default=str))


class Names:
    """The names of pods that are taken, and new ones."""

    def __init__(self, pods: Iterable[wire.Pod]) -> None:
        """Start with the names of existing pods."""
        self._taken = {(pod.metadata.namespace, pod.metadata.name) for pod in pods}
        # How many names were tried of each base, so that a thousand like pods do not try them all again.
        self._tries: Counter[tuple[str, str]] = Counter()

    def new(self, namespace: str, base: str) -> str:
        """``base`` with five letters behind it that make the name a new one."""
        base = f"{base}-"[: _NAME_MAX - _SUFFIX]
        tries = self._tries[namespace, base]
        name = base + letters(_SUFFIX, namespace, base, tries)
        while (namespace, name) in self._taken:
            tries += 1
            name = base + letters(_SUFFIX, namespace, base, tries)
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
        template = objects.mapping({"spec": workload.spec}, "spec", "template")
        with below(workload.template):
            self.pod = objects.admitted(template, priorities)
        self._workload = workload

    def make(
        self,
        name: str,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        owner: wire.Owner | None = None,
        spec: wire.PodSpec | None = None,
    ) -> wire.Pod:
        """A pod.

        Args:
            name: its own.
            labels: beside those of the template.
            annotations: the template's annotations.
            owner: in place of the workload.
            spec: in place of the template's.
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
