"""The printed name of a GPU's model: one name, although nodes write the model in several ways.

A node with HAMi's plugin reports ``NVIDIA-NVIDIA A100-SXM4-80GB``, the label of another node says
``NVIDIA-A100-SXM4-80GB``: both are printed as ``A100-SXM4-80GB``. Where GPUs are shared, NVIDIA's GPU feature
discovery adds ``-SHARED`` to the label: the model is the same. The profile that it adds for MIG
(``-MIG-1g.5gb``) stays: such a device is a part of a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

# Separates the words of a name.
_BETWEEN = re.compile(r"[\s_-]+")
_SHARED = "SHARED"


def list_makers(resources: Iterable[str]) -> frozenset[str]:
    """List the makers of devices: a maker is the second part from the end of the domain of its resource."""
    domains = (resource.partition("/")[0] for resource in resources)
    return frozenset(domain.split(".")[-2:][0].lower() for domain in domains)


def print_name(text: str, makers: Collection[str]) -> str:
    """Print a model's name with dashes between words, without ``-SHARED`` and without the maker.

    Nodes write the maker not at all, once or twice.
    """
    words = [word for word in _BETWEEN.split(text) if word]
    while len(words) > 1 and words[0].lower() in makers:
        del words[0]
    if len(words) > 1 and words[-1] == _SHARED:
        del words[-1]
    return "-".join(words)
