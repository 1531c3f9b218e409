"""Host ports that pods hold on nodes, found by port: what one asks costs what is held of just that."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING
from weakref import WeakSet, WeakValueDictionary, finalize

from scheduler.state.counting.counts import Count

if TYPE_CHECKING:
    from scheduler.state.pods import PodRecord

Port = tuple[str, int, str]
_Key = tuple[str, int]
_ANY = "0.0.0.0"  # noqa: S104 - compared with, not bound to


class Conflicts(Count):
    """How often pods on a row hold a port that conflicts with one of those wanted."""

    __slots__ = ("_ips", "of_one")

    def __init__(self, wanted: tuple[Port, ...], capacity: int) -> None:
        super().__init__(capacity)
        self._ips: dict[_Key, list[str]] = defaultdict(list)
        for port in wanted:
            self._ips[port[:2]].append(port[2])
        #: How often one more pod that wants the same conflicts with it.
        self.of_one = sum(map(self.with_port, wanted))

    def with_port(self, held: Port) -> int:
        """How many of the ports wanted conflict with one that is held.

        Equal protocol and port conflict where the addresses are equal or one of them is any.
        """
        ip = held[2]
        return sum(mine == ip or _ANY in {mine, ip} for mine in self._ips.get(held[:2], ()))


class PortTable:
    """Counts per node row and port (protocol, port, ip), and the rows that hold a port, by port."""

    def __init__(self) -> None:
        self._held: dict[int, Counter[Port]] = {}
        # (protocol, port) → ip → rows.
        self._rows: dict[_Key, dict[str, set[int]]] = defaultdict(dict)
        # What live shapes look at, by all that one wants and by (protocol, port).
        self._wanted: WeakValueDictionary[tuple[Port, ...], Conflicts] = WeakValueDictionary()
        self._looking: dict[_Key, WeakSet[Conflicts]] = {}

    def list_on(self, row: int) -> dict[Port, int]:
        """What is held on a row, and how often."""
        return dict(self._held.get(row, ()))

    def follow_pod(self, pod: PodRecord, node_row: int, sign: int) -> None:
        """A pod came to a node (1), or left it (-1)."""
        for port in pod.template.ports:
            self.change(node_row, port, sign)

    def change(self, row: int, port: Port, sign: int) -> None:
        """A pod on the row takes a port (1) or gives it back (-1)."""
        held = self._held.setdefault(row, Counter())
        held[port] += sign
        self._tell(row, port, sign)
        if held[port]:
            self._rows[port[:2]].setdefault(port[2], set()).add(row)
            return
        del held[port]
        if not held:
            del self._held[row]
        self._leave(row, port)

    def count_conflicts(self, wanted: tuple[Port, ...], capacity: int) -> Conflicts:
        """What is held on each row that conflicts with the ports wanted, kept up as long as somebody has it."""
        found = self._wanted.get(wanted)
        if found is not None:
            return found
        found = self._wanted[wanted] = Conflicts(wanted, capacity)
        keys = {port[:2] for port in wanted}
        for port, row, n in self._all_held(keys):
            found.change(row, n * found.with_port(port))
        for key in keys:
            self._looking.setdefault(key, WeakSet()).add(found)
        finalize(found, _look_away, self._looking, keys).atexit = False
        return found

    def _all_held(self, keys: set[_Key]) -> Iterator[tuple[Port, int, int]]:
        for key in keys & self._rows.keys():
            for ip, rows in self._rows[key].items():
                port = (*key, ip)
                yield from ((port, row, self._held[row][port]) for row in rows)

    def _tell(self, row: int, port: Port, by: int) -> None:
        for conflicts in self._looking.get(port[:2], ()):
            n = conflicts.with_port(port)
            if n:
                conflicts.change(row, by * n)

    def _leave(self, row: int, port: Port) -> None:
        by_ip = self._rows[port[:2]]
        by_ip[port[2]].discard(row)
        if not by_ip[port[2]]:
            del by_ip[port[2]]
        if not by_ip:
            del self._rows[port[:2]]


def _look_away(looking: dict[_Key, WeakSet[Conflicts]], keys: set[_Key]) -> None:
    for key in keys:
        # The one that has just gone may still be counted, but is no longer found.
        if next(iter(looking.get(key, ())), None) is None:
            looking.pop(key, None)
