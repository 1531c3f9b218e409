"""Charges: what a pod of each template adds to a node, compiled once per template."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import numpy as np

from scheduler.api.pods import gpus
from scheduler.api.pods.templates import PodTemplate
from scheduler.schema import columns as c
from scheduler.schema import empty, shared
from scheduler.state.nodes import NodeTable
from scheduler.state.structures.runs import Runs, round_up

_FIRST_CAPACITY = 64
# Pods with so many containers may share what these hold: many pods ask for the same. Longer lists would take much memory.
_SHARED_MAX = 4
_Ref = weakref.ref[PodTemplate]
_NOTHING = empty.make_containers()


class ChargeTable:
    """Owns and grows ``columns.Charges``; a charge goes with its template.

    The parts of a charge are: the requested resources, the pod itself first, then milli-CPU and bytes
    with kube-scheduler's defaults, then one pod of its size, if it asks GPUs.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self.columns = c.Charges(
            run=np.zeros((2, _FIRST_CAPACITY), np.int64),
            parts=np.zeros((_FIRST_CAPACITY, 2), np.int64),
            mark=np.zeros(_FIRST_CAPACITY, np.int64),
        )
        self._runs = Runs()
        self._numbers: dict[_Ref, int] = {}
        self._free: list[int] = []
        self._templates: list[_Ref] = []
        self._containers: list[c.Ints] = []
        # References that hold the table weakly: it is freed as soon as its cluster is.
        release = weakref.WeakMethod(self._release)

        def gone(template: _Ref) -> None:
            if free := release():
                free(template)

        self._gone = gone

    def __len__(self) -> int:
        return len(self._numbers)

    def number_template(self, template: PodTemplate) -> int:
        """Return the number of a template's charge, which is compiled when it is first asked for."""
        number = self._numbers.get(weakref.ref(template))
        return self._compile(template) if number is None else number

    def get_parts(self, number: int) -> c.Ints:
        """Return [p, 2] the parts of a charge. Do not keep them: the rows of resources come and go."""
        first, n = self.columns.run[:, number].tolist()
        return self.columns.parts[first : first + n]

    def get_containers(self, number: int) -> c.Ints:
        """Return [6, C] what the containers may hold on cards, as in ``Ask``; C = 0 for pods that ask no card."""
        return self._containers[number]

    def list_asking(self, resource: str) -> list[int]:
        """List the numbers of the charges that have a part for a resource."""
        return [number for number, _ in self._list_asking_parts(resource)]

    def point(self, resource: str, row: int) -> None:
        """Give a resource another row of the resource matrix; -1: it has no row any more."""
        for number, i in self._list_asking_parts(resource):
            self.get_parts(number)[i, 0] = row if row < 0 else c.REQUESTED_AT + row

    def _list_asking_parts(self, resource: str) -> Iterator[tuple[int, int]]:
        """List the charges with a part for a resource, and the place of this part."""
        for reference, number in list(self._numbers.items()):
            template = reference()
            if template is None:
                continue
            for i, (name, _) in enumerate(template.requests.amounts):
                if name == resource:
                    yield number, 1 + i
            if template.size >= 0 and gpus.SIZES[template.size] == resource:
                yield number, len(self.get_parts(number)) - 1

    def _compile(self, template: PodTemplate) -> int:
        parts = self._make_parts(template)
        number = self._free.pop() if self._free else len(self._templates)
        first = self._runs.take(round_up(len(parts)))
        self._grow(number + 1, self._runs.end)
        self.columns.run[:, number] = first, len(parts)
        self.columns.parts[first : first + len(parts)] = parts
        self.columns.mark[number] = find_mark(template)
        containers = _make_containers(template.most)
        reference = weakref.ref(template, self._gone)
        self._numbers[reference] = number
        self._templates[number : number + 1] = [reference]
        self._containers[number : number + 1] = [containers]
        return number

    def _make_parts(self, template: PodTemplate) -> list[tuple[int, int]]:
        asked, find_row = template.requests, self._nodes.resources.find
        parts = [(c.REQUESTED_AT + c.PODS, 1)]
        for name, amount in asked.amounts:
            row = find_row(name)
            parts.append((row if row < 0 else c.REQUESTED_AT + row, amount))
        parts += [(c.NONZERO_AT, asked.nonzero_cpu), (c.NONZERO_AT + 1, asked.nonzero_memory)]
        if template.size >= 0:
            row = find_row(gpus.SIZES[template.size])
            parts.append((row if row < 0 else c.REQUESTED_AT + row, 1))
        return parts

    def _release(self, template: _Ref) -> None:
        number = self._numbers.pop(template)
        first, n = self.columns.run[:, number].tolist()
        self._runs.give_back(first, round_up(n))
        self._containers[number] = _NOTHING
        self._free.append(number)

    def _grow(self, n_charges: int, n_parts: int) -> None:
        run, parts, mark = self.columns.run, self.columns.parts, self.columns.mark
        if n_charges > run.shape[1]:
            run = np.pad(run, ((0, 0), (0, run.shape[1])))
            mark = np.pad(mark, (0, mark.size))
        if n_parts > parts.shape[0]:
            parts = np.pad(parts, ((0, max(n_parts, 2 * parts.shape[0]) - parts.shape[0]), (0, 0)))
        if run is not self.columns.run or parts is not self.columns.parts:
            self.columns.adopt(c.Charges(run, parts, mark))


def _make_containers(most: tuple[gpus.ContainerAsk, ...]) -> c.Ints:
    """Make what the containers may hold on cards, as ``ChargeTable.get_containers`` returns it."""
    if len(most) > _SHARED_MAX:
        return np.array(most, np.int64).T.copy()
    return shared.make_columns(*most) if most else _NOTHING


def find_mark(template: PodTemplate) -> int:
    """Find what a pod adds to the marks of its cards."""
    asks = [one.gpu for one in template.list_by_family() if one.gpu is not None]
    return sum(ask.sharing.mark for ask in asks)
