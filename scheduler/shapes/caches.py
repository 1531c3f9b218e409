"""What all caches about kinds of pods share: when an entry ends, and how much memory templates take."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

from scheduler.api.pods.templates import PodTemplate
from scheduler.state.structures.sizes import estimate_bytes

# Whether any pod of a template is there, or was there a while ago.
IsThere = Callable[[PodTemplate], bool]


class TemplateSizes:
    """The memory that templates take; each template is estimated once."""

    def __init__(self) -> None:
        self._sizes: WeakKeyDictionary[PodTemplate, int] = WeakKeyDictionary()

    def estimate(self, template: PodTemplate) -> int:
        """Estimate the bytes of a template with all its strings."""
        size = self._sizes.get(template)
        if size is None:
            size = self._sizes[template] = estimate_bytes(template)
        return size
