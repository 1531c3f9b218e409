"""Caches for kinds of pods: their bounds, and their end when the pods are gone."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

from scheduler.api.pods.templates import PodTemplate
from scheduler.state.structures.sizes import estimate_bytes

# Whether any pod of a template is there, or was there a while ago.
IsThere = Callable[[PodTemplate], bool]


class TemplateSizes:
    """How much memory templates take, each estimated once."""

    def __init__(self) -> None:
        self._sizes: WeakKeyDictionary[PodTemplate, int] = WeakKeyDictionary()

    def estimate(self, template: PodTemplate) -> int:
        """Bytes of a template, and of all that is made of its words."""
        size = self._sizes.get(template)
        if size is None:
            size = self._sizes[template] = estimate_bytes(template)
        return size
