"""The card table: all cards that are allocated one by one; the cards of a node's pool are neighbours."""

from __future__ import annotations

import numpy as np

from scheduler.api.cards import SLOTS_MAX, Card, Place
from scheduler.devices import counted
from scheduler.schema import columns as c
from scheduler.state.carvings import CarvingTable
from scheduler.state.links import LinkTable
from scheduler.state.structures.interning import Interner
from scheduler.state.structures.runs import Runs

_FIRST_CAPACITY = 256
# So many UUIDs of cards that are gone may stay: in a small cluster UUIDs are never numbered anew.
_SPARE_UUIDS = 64

# The most kinds of cards; each card beyond them counts as the kind that is most like it.
KINDS_MAX = 32


class CardTable:
    """Owns and grows ``columns.Cards``; the cards of a pool are a run of rows.

    Attributes:
        kinds: (core percent, MiB) of the cards seen; the first is a whole device that is counted.
        version: rises when cards come or go.
    """

    def __init__(self) -> None:
        self.models: Interner[str] = Interner()
        self.modes: Interner[str] = Interner()
        self.uuids: Interner[str] = Interner()
        self.kinds: Interner[tuple[int, int]] = Interner(counted.CARD)
        self.carvings = CarvingTable()
        self.links = LinkTable()
        self.columns = self._make_columns(_FIRST_CAPACITY)
        self.most_on_a_node = 1
        self.version = 0
        self._runs = Runs()
        self._n_used = self._n_numberings = 0

    @property
    def words(self) -> tuple[int, ...]:
        """Changes when requests must be compiled anew, because words are new or have new numbers."""
        n_words = len(self.models), len(self.modes), len(self.uuids)
        return (*n_words, self._n_numberings, self.most_on_a_node, self.has_parts)

    @property
    def has_parts(self) -> bool:
        """Whether any card can be cut, or could since the start."""
        return len(self.carvings.sizes) > 1

    def place_cards(self, cards: tuple[Card, ...], pool: int) -> int:
        """Write the cards of one node's pool, of which nothing is in use, and return the row of the first."""
        n = len(cards)
        if not n:
            # Row 0 always exists: columns are also indexed by the first card of pools without cards.
            return 0
        self.version += 1
        start = self._runs.take(n)
        self._grow()
        self.most_on_a_node = max(self.most_on_a_node, n)
        columns = self.columns
        groups, links = [card.group for card in cards], self.links.find_rows(cards)
        for d, card in enumerate(cards, start):
            columns.link[d] = links[d - start]
            columns.total[:, d] = (card.cores, card.mib, card.sharers)
            columns.milli[:, d] = [
                c.WHOLE / total if total > 0 else 0.0 for total in (card.cores, card.mib)
            ]
            columns.healthy[d] = card.healthy
            columns.cordoned[d] = False
            columns.mig[d] = card.is_carved
            if card.parts:
                columns.carving[d] = self.carvings.number_parts(card.parts)
                columns.counter[d] = self.carvings.take_counters()
            columns.numa[d] = card.numa
            columns.position[d] = card.index
            columns.model[d] = self.models.number(card.model)
            columns.mode[d] = self.modes.number(card.mode)
            columns.uuid[d] = self.uuids.number(card.id)
            columns.pool[d] = pool
            columns.group[d] = groups.index(card.group) if card.group else -1
            if any(card.by_number) or columns.by_number[:, d].any():
                columns.by_number[:, d] = card.by_number
            columns.kind[d] = self._find_kind(card)
        self._n_used += n
        if len(self.uuids) > 2 * self._n_used + _SPARE_UUIDS:
            self._give_uuids_back()
        return start

    def _find_kind(self, card: Card) -> int:
        kind = (card.cores, card.mib)
        if self.kinds.find(kind) < 0 and len(self.kinds) >= KINDS_MAX:
            known = self.kinds.values[1:]
            alike = min(known, key=lambda k: (abs(k[1] - kind[1]), abs(k[0] - kind[0])))
            return self.kinds.number(alike)
        return self.kinds.number(kind)

    def give_back(self, start: int, n: int) -> None:
        """Give back the rows of a pool's cards, which are gone and unused; another node may have the rows."""
        for d in range(start, start + n):
            if self.columns.carving[d]:
                self.carvings.give_back(int(self.columns.counter[d]))
                self.columns.carving[d] = 0
        self._runs.give_back(start, n)
        self._n_used -= n
        self.version += 1

    def find_overfull(self, rows: c.Ints) -> c.Flags:
        """Find [len(rows)] of which cards more is in use than they have.

        The parts of a card may have a little more than all its cores or memory, because the driver rounds the cores of
        each part up, and tables of templates round its memory: of such a card no slot may be in use twice.
        """
        columns = self.columns
        over = columns.used[:, rows] > columns.total[:, rows]
        is_cut = columns.carving[rows] > 0
        over[c.CORES, is_cut] = over[c.MIB, is_cut] = False
        found: c.Flags = np.asarray(over.any(axis=0))
        if is_cut.any():
            counters = columns.counter[rows[is_cut], np.newaxis] + np.arange(SLOTS_MAX)
            found[is_cut] |= (self.carvings.slots.used[counters] > 1).any(axis=1)
        return found

    def find_place(self, part: int) -> Place | None:
        """Return the place of a part of a card, None for none."""
        return self.carvings.find_place(part)

    def find_part(self, d: int, place: Place | None) -> int:
        """Find the part that is cut out of a card at a place; ``NO_PART`` for none, and for rows that are no cards."""
        return self.carvings.find_part(int(self.columns.carving[d]) if d >= 0 else 0, place)

    def find_uuid(self, d: int) -> str:
        """Return the UUID of a card."""
        return self.uuids.values[int(self.columns.uuid[d])]

    def find_model(self, d: int) -> str:
        """Return the model of a card."""
        return self.models.values[int(self.columns.model[d])]

    def _give_uuids_back(self) -> None:
        """Number the UUIDs of the cards that are there anew, because most UUIDs are of cards that are gone."""
        free = self._runs.list_free()
        there = {d: self.find_uuid(d) for d in range(self._runs.end) if d not in free}
        self.uuids = Interner()
        # Free rows have no card: any existing number will do.
        self.columns.uuid[:] = 0
        for d, uuid in there.items():
            self.columns.uuid[d] = self.uuids.number(uuid)
        self._n_numberings += 1

    def _grow(self) -> None:
        """Make room for more rows. A column in which nothing stands is not written to: it takes no memory until then."""
        capacity = self.columns.numa.size
        if self._runs.end > capacity:
            fresh = self._make_columns(max(self._runs.end, capacity * 2))
            for before, after in zip(self.columns.list_values(), fresh.list_values(), strict=True):
                if before is not after and before.any():
                    after[..., :capacity] = before
            self.columns.adopt(fresh)

    def _make_columns(self, capacity: int) -> c.Cards:
        return c.Cards(
            total=np.zeros((3, capacity), np.int64),
            used=np.zeros((3, capacity), np.int64),
            milli=np.zeros((2, capacity)),
            healthy=np.zeros(capacity, np.bool_),
            cordoned=np.zeros(capacity, np.bool_),
            mig=np.zeros(capacity, np.bool_),
            carving=np.zeros(capacity, np.int32),
            counter=np.zeros(capacity, np.int32),
            cut=np.zeros(capacity, np.int64),
            numa=np.zeros(capacity, np.int32),
            position=np.zeros(capacity, np.int32),
            model=np.zeros(capacity, np.int32),
            mode=np.zeros(capacity, np.int32),
            uuid=np.zeros(capacity, np.int32),
            pool=np.zeros(capacity, np.int32),
            link=np.full(capacity, -1, np.int32),
            links=self.links.columns,
            carvings=self.carvings.carvings,
            slots=self.carvings.slots,
            group=np.full(capacity, -1, np.int32),
            marks=np.zeros(capacity, np.int64),
            by_number=np.zeros((2, capacity), np.int64),
            kind=np.zeros(capacity, np.int32),
        )
