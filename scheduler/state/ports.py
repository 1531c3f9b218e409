"""Host ports that pods hold on nodes, found by port: what one asks costs what is held of just that."""

from __future__ import annotations

from collections import Counter, defaultdict

Port = tuple[str, int, str]
_ANY = "0.0.0.0"  # noqa: S104 - compared with, not bound to


class PortTable:
    """Counts per node row and port (protocol, port, ip), and the rows that hold a port, by port."""

    def __init__(self) -> None:
        self._held: dict[int, Counter[Port]] = {}
        # (protocol, port) → ip → rows.
        self._rows: dict[tuple[str, int], dict[str, set[int]]] = defaultdict(dict)

    def on(self, row: int) -> dict[Port, int]:
        """What is held on a row, and how often."""
        return dict(self._held.get(row, ()))

    def change(self, row: int, port: Port, sign: int) -> None:
        """A pod on the row takes a port (1) or gives it back (-1)."""
        held = self._held.setdefault(row, Counter())
        held[port] += sign
        by_ip = self._rows[port[:2]]
        if held[port]:
            by_ip.setdefault(port[2], set()).add(row)
            return
        del held[port]
        if not held:
            del self._held[row]
        self._leave(row, port)

    def clear(self, row: int) -> None:
        """Nothing is held on the row any more."""
        for port in self._held.pop(row, ()):
            self._leave(row, port)

    def taken(self, wanted: tuple[Port, ...]) -> set[int]:
        """Rows on which one of the wanted ports conflicts with one that is held.

        Equal protocol and port conflict where the addresses are equal or one of them is any.
        """
        rows: set[int] = set()
        for protocol, number, ip in wanted:
            by_ip = self._rows.get((protocol, number))
            if by_ip is None:
                continue
            if ip == _ANY:
                rows.update(*by_ip.values())
            else:
                rows |= by_ip.get(ip, set()) | by_ip.get(_ANY, set())
        return rows

    def _leave(self, row: int, port: Port) -> None:
        by_ip = self._rows[port[:2]]
        by_ip[port[2]].discard(row)
        if not by_ip[port[2]]:
            del by_ip[port[2]]
        if not by_ip:
            del self._rows[port[:2]]
