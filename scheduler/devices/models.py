"""The printed name of a GPU's model: one name, in whatever way nodes write the model.

A node with HAMi's plugin reports ``NVIDIA-NVIDIA A100-SXM4-80GB``, the label of another node says
``NVIDIA-A100-SXM4-80GB``: both are printed as ``A100-SXM4-80GB``. Where GPUs are shared, NVIDIA's GPU feature
discovery adds ``-SHARED`` to the label: the model is the same. The profile that it adds for MIG
(``-MIG-1g.5gb``) stays: such a device is a part of a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

# What parts the words of a name.
_BETWEEN = re.compile(r"[\s_-]+")
_SHARED = "SHARED"


def makers(resources: Iterable[str]) -> frozenset[str]:
    """Who make devices: the second part from the end of the domains of their resources."""
    domains = (resource.partition("/")[0] for resource in resources)
    return frozenset(domain.split(".")[-2:][0].lower() for domain in domains)


def print_name(text: str, makers: Collection[str]) -> str:
    """The name without its maker, which nodes write not at all, once or twice, or ``-SHARED``, with dashes between words."""
    words = [word for word in _BETWEEN.split(text) if word]
    while len(words) > 1 and words[0].lower() in makers:
        del words[0]
    if len(words) > 1 and words[-1] == _SHARED:
        del words[-1]
    return "-".join(words)
