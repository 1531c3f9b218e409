"""The ways in which nodes share GPUs, for pods that request a share before anybody has decided which node they get.

The thread of the webhook asks while the main loop may replace columns by longer ones: only rows that all have are read.
"""

from __future__ import annotations

import numpy as np

from scheduler.api import plugin_parts
from scheduler.api.admission.backends import ANY_SIZE, Backend
from scheduler.api.plugin_parts import Part
from scheduler.engine.answers.inside import Inside
from scheduler.engine.answers.reach import Reach
from scheduler.engine.questions import nodes as ask
from scheduler.measure.cards import list_run_rows
from scheduler.schema import columns as c


def list_backends(inside: Inside, question: ask.SharedGpus) -> tuple[Backend, ...]:
    """The ways in which nodes share GPUs, without the cards that another scheduler allocates."""
    cluster = inside.cluster
    pools, devices = cluster.nodes.columns.pools, cluster.registers.devices
    total, columns = cluster.cards.columns.total, (pools.family, pools.node, pools.count, pools.start)  # fmt: skip
    managed, part, found = pools.managed, pools.part, list[Backend]()
    n = min(part.shape[1], managed.size, *(column.size for column in columns))
    family, node, count, start = (column[:n] for column in columns)
    managed, part = managed[:n], part[:, :n]
    reach = Reach(question.pod, cluster.nodes)
    wanted = devices.find_family(question.cards)
    foreign = cluster.nodes.foreign
    own = np.flatnonzero((family == wanted) & managed & (node >= 0) & (node < foreign.size))
    own = own[~foreign[node[own]]]
    most = _find_largest(total[c.MIB], start[own], count[own])
    largest_first = np.argsort(-most, kind="stable")
    at = reach.find_first(node[own[largest_first]])
    mib = int(most[largest_first[at]]) if at >= 0 else 0
    if wanted >= 0 and mib:
        found.append(Backend(ANY_SIZE, question.cards, 1.0, mib))
    is_part = (part[c.PART_WAY] > 0) & (part[c.PART_GPUS] > 0)
    counted = np.flatnonzero(~managed & (node >= 0) & is_part)
    sizes, kinds = np.unique(
        np.vstack((family[counted], part[:, counted])), axis=1, return_inverse=True
    )
    for kind in range(sizes.shape[1]):
        alike = counted[kinds.reshape(-1) == kind]
        at = reach.find_first(node[alike])
        if at < 0:
            continue
        facts = cluster.nodes.facts[int(node[alike[at]])]
        gpus, mib, way = part[:, alike[at]].tolist()
        resource = devices.families[int(family[alike[at]])]
        labels = facts.labels if facts else {}
        one = Part(gpus, int(mib), plugin_parts.WAYS[int(way)])
        marks = plugin_parts.list_marks(resource, labels)
        memory = plugin_parts.read_memory_part(resource, labels, one)
        found.append(Backend(one.way, resource, gpus, one.mib, marks, memory))
    return tuple(found)


def _find_largest(mib: c.Ints, start: c.Ints, count: c.Ints) -> c.Ints:
    """Find the MiB of the largest card of each pool; 0 for one without cards."""
    largest = np.zeros(start.size, np.int64)
    rows = list_run_rows(start, count)
    is_there = rows < mib.size
    np.maximum.at(largest, np.repeat(np.arange(start.size), count)[is_there], mib[rows[is_there]])
    return largest
