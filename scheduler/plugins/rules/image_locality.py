"""ImageLocality: nodes that have the pod's images already, by bytes; an image that few nodes have counts less.

Source: kube-scheduler's imagelocality/image_locality.go.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from scheduler.api.pods.templates import PodTemplate
from scheduler.plugins.contract import Rule, Score
from scheduler.schema import columns as c
from scheduler.state.nodes import NodeTable

_MIB = 1 << 20
# Bytes that count for nothing, and those of one image that count for all.
_LEAST, _MOST_OF_ONE = 23 * _MIB, 1000 * _MIB

Images = tuple[str, ...]


def _wants(template: PodTemplate) -> Images | None:
    return template.images or None


def _points(images: Images, nodes: NodeTable, rows: c.Ints) -> c.Ints:
    """Points 0..100 by the bytes that are there.

    An image that two containers run counts twice; of one that some nodes have only that part of its bytes
    counts, so that pods of it do not all crowd on the first.
    """
    total = np.zeros(nodes.capacity, np.int64)
    for name, times in Counter(images).items():
        having, sizes = nodes.images.find_nodes(name)
        if having.size:
            share = having.size / len(nodes.rows)
            total[having] += times * (sizes * share).astype(np.int64)
    most = _MOST_OF_ONE * len(images)
    points: c.Ints = 100 * (np.clip(total[rows], _LEAST, most) - _LEAST) // (most - _LEAST)
    return points


def _read(nodes: NodeTable) -> tuple[int, int]:
    return nodes.images.version, len(nodes.rows)


RULE = Rule(
    name="ImageLocality",
    score=Score(wants=_wants, raw=_points, how=c.AS_IS, weight=1, reads=_read),
)
