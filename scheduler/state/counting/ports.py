"""Host ports that pods hold on nodes, found by port: a question about a port costs only as much as its holders."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from weakref import WeakSet, WeakValueDictionary, finalize

from scheduler.state.counting.counts import Count

if TYPE_CHECKING:
    from scheduler.state.pods import PodRecord

Port = tuple[str, int, str]
_Key = tuple[str, int]
_ANY = "0.0.0.0"  # noqa: S104 - compared with, not bound to


class Conflicts(Count):
    """Counts on each row how often pods hold a port that conflicts with a wanted port."""

    __slots__ = ("_ips", "of_one")

    def __init__(self, wanted: tuple[Port, ...], capacity: int) -> None:
        super().__init__(capacity)
        self._ips: dict[_Key, list[str]] = defaultdict(list)
        for port in wanted:
            self._ips[port[:2]].append(port[2])
        #: How often one more pod with the same ports conflicts with the wanted ports.
        self.of_one = sum(map(self.count_conflicting, wanted))

    def count_conflicting(self, held: Port) -> int:
        """Count the wanted ports that conflict with a held port.

        Ports of equal protocol and number conflict if their addresses are equal or one of the addresses is ``0.0.0.0``.
        """
        ip = held[2]
        return sum(mine == ip or _ANY in {mine, ip} for mine in self._ips.get(held[:2], ()))


class PortTable:
    """Counts per node row and port (protocol, port, ip), and the rows that hold a port, by port."""

    def __init__(self) -> None:
        self._held: dict[int, Counter[Port]] = {}
        # (protocol, port) → ip → rows.
        self._rows: dict[_Key, dict[str, set[int]]] = defaultdict(dict)
        # The counts that live shapes hold: by all wanted ports, and by (protocol, port).
        self._wanted: WeakValueDictionary[tuple[Port, ...], Conflicts] = WeakValueDictionary()
        self._looking: dict[_Key, WeakSet[Conflicts]] = {}

    def list_on(self, row: int) -> dict[Port, int]:
        """List the ports that are held on a row, and how often."""
        return dict(self._held.get(row, ()))

    def follow_pod(self, pod: PodRecord, node_row: int, sign: int) -> None:
        """Note that a pod came to a node (1), or left it (-1)."""
        for port in pod.template.ports:
            self.change(node_row, port, sign)

    def ignores(self, pods: Sequence[PodRecord]) -> bool:
        """Whether none of these pods takes a port."""
        return not any(pod.template.ports for pod in pods)

    def change(self, row: int, port: Port, sign: int) -> None:
        """Note that a pod on a row takes a port (1), or gives it back (-1)."""
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
        """Count the held ports on each row that conflict with the wanted ports; kept up as long as the count is in use."""
        found = self._wanted.get(wanted)
        if found is not None:
            return found
        found = self._wanted[wanted] = Conflicts(wanted, capacity)
        keys = {port[:2] for port in wanted}
        for port, row, n in self._list_held(keys):
            found.change(row, n * found.count_conflicting(port))
        for key in keys:
            self._looking.setdefault(key, WeakSet()).add(found)
        finalize(found, _stop_looking, self._looking, keys).atexit = False
        return found

    def _list_held(self, keys: set[_Key]) -> Iterator[tuple[Port, int, int]]:
        for key in keys & self._rows.keys():
            for ip, rows in self._rows[key].items():
                port = (*key, ip)
                yield from ((port, row, self._held[row][port]) for row in rows)

    def _tell(self, row: int, port: Port, by: int) -> None:
        for conflicts in self._looking.get(port[:2], ()):
            n = conflicts.count_conflicting(port)
            if n:
                conflicts.change(row, by * n)

    def _leave(self, row: int, port: Port) -> None:
        by_ip = self._rows[port[:2]]
        by_ip[port[2]].discard(row)
        if not by_ip[port[2]]:
            del by_ip[port[2]]
        if not by_ip:
            del self._rows[port[:2]]


def _stop_looking(looking: dict[_Key, WeakSet[Conflicts]], keys: set[_Key]) -> None:
    for key in keys:
        # A count that has just ended may still be in the set, but is not listed any more.
        if next(iter(looking.get(key, ())), None) is None:
            looking.pop(key, None)
