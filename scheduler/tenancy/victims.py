"""Who has to give quota back for a workload: of those who may be asked to, as many as are needed.

Source: Kueue (2026-08), ``pkg/scheduler/preemption``: ``classicalPreemptions``, ``fairPreemptions`` and
``SimulatePreemption``. Whether there is a place is asked of the caller wherever the quota suffices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.api.queues.settings import FINAL_SHARE, INITIAL_SHARE
from scheduler.kernels import quotas, reclaim
from scheduler.schema import quotas as q
from scheduler.tenancy.assignments import Mode
from scheduler.tenancy.candidates import Asker, Candidate, Candidates, Rules, Why
from scheduler.tenancy.trees import Column, Tree
from scheduler.tenancy.works import Work

_REASONS = {q.REASON_OWN: Why.OWN, q.REASON_RECLAIM: Why.RECLAIM, q.REASON_FAIR: Why.FAIR}
_RULES = {FINAL_SHARE: q.FINAL_SHARE, INITIAL_SHARE: q.INITIAL_SHARE}


class Victim(NamedTuple):
    """A workload that has to go, and why."""

    key: str
    why: Why


# Whether there is a place for the asker once these have gone.
HasPlace = Callable[[Sequence[str]], bool]
# Of so many domains it is tried at most whether those in it can make one place.
_SITES_MOST = 32


class PlaceSearch(NamedTuple):
    """How a place is found for the asker.

    Attributes:
        has_place: whether there is a place once some workloads have gone.
        list_sites: lists for some workloads those who are in one domain, domain by domain.
    """

    has_place: HasPlace
    list_sites: Callable[[Sequence[str]], Sequence[frozenset[str]]]


def needs_no_place(_: Sequence[str]) -> bool:
    """Answer for a workload whose place is not looked for: quota is enough."""
    return True


class Reclaiming:
    """Finds victims in one tree. The tree is as before whenever a method returns."""

    def __init__(self, tree: Tree, works: Mapping[str, Work], rules: Rules) -> None:
        self._tree, self._works, self._rules = tree, works, rules
        self._candidates = Candidates(tree, works, rules)
        self._said = np.zeros(q.N_SHARE, np.int64)
        # What was found for one workload, by what it wants and of which columns.
        self._known: dict[tuple[frozenset[tuple[Column, int]], tuple[Column, ...]], list[Victim]]
        self._known = {}

    def begin(self) -> None:
        """Begin with another workload, or after a change of the tree."""
        self._known.clear()

    def find_victims(self, asker: Asker, search: PlaceSearch | None = None) -> list[Victim]:
        """Find who has to go for a workload; nobody if no allowed set is enough.

        Those go first who would go in Kueue. If they give the quota back and make no place, those who are in one domain
        go first, and of all domains that with the fewest victims is chosen. If that makes no place either, it may be taken
        by workloads that use nothing of what is short, and these are asked, too (kueue#10497).
        """
        if not asker.queue.preemption.takes_back:
            return []
        if search is None:
            key = frozenset(asker.amounts.items()), tuple(asker.needed)
            found = self._known.get(key)
            if found is None:
                asked = self._make_asked(asker)
                listed = self._list_candidates(asker, asked)
                found = self._known[key] = self._search(*listed, asked, needs_no_place)
            return found
        asked = self._make_asked(asker)
        listed = self._list_candidates(asker, asked)
        best, had_quota = self._find_with_place(listed, asked, search)
        if best or not (had_quota or self._has_quota(asked)):
            return best
        return self._find_with_others(asker, search, len(listed[0]))

    def _find_with_others(self, asker: Asker, search: PlaceSearch, n_before: int) -> list[Victim]:
        """Find who has to go for the place of a workload, of all who use anything of its flavors.

        ``n_before``: so many use what is short, and are not enough. Nobody is looked for if there are no others.
        """
        flavors = {flavor for flavor, _ in asker.amounts}
        columns = [one for one in self._tree.columns if one[0] in flavors]
        if set(columns) <= set(asker.needed):
            return []
        more = asker._replace(needed=columns)
        asked = self._make_asked(more)
        listed = self._list_candidates(more, asked)
        candidates, _ = listed
        names = [self._name(candidates, i) for i in range(len(candidates))]
        if len(names) == n_before or not search.has_place(names):
            return []
        return self._find_with_place(listed, asked, search)[0]

    def _has_quota(self, asked: q.Asked) -> bool:
        return quotas.fits_within(
            self._tree.handle, asked.queue, asked.columns, asked.amounts, True
        )

    def _find_with_place(
        self,
        listed: tuple[Sequence[Candidate], Sequence[bool]],
        asked: q.Asked,
        search: PlaceSearch,
    ) -> tuple[list[Victim], bool]:
        """Find who of those listed has to go for a workload and its place, and whether there is a way to its quota."""
        candidates, attempts = listed
        had_quota = False

        def has_place(gone: Sequence[str]) -> bool:
            nonlocal had_quota
            had_quota = True
            return search.has_place(gone)

        best = self._search(candidates, attempts, asked, has_place)
        if best or not had_quota:
            return best, had_quota
        names = [self._name(candidates, i) for i in range(len(candidates))]
        for site in search.list_sites(names)[:_SITES_MOST]:
            order = sorted(range(len(candidates)), key=lambda i: names[i] not in site)
            found = self._search([candidates[i] for i in order], attempts, asked, has_place)
            if found and (not best or len(found) < len(best)):
                best = found
        return best, had_quota

    def _search(
        self,
        candidates: Sequence[Candidate],
        attempts: Sequence[bool],
        asked: q.Asked,
        has_place: HasPlace,
    ) -> list[Victim]:
        if not candidates:
            return []
        if self._rules.strategies is not None:
            return self._take_by_share(candidates, asked, has_place, self._rules.strategies)
        for may_borrow in attempts:
            found = self._take(candidates, asked, has_place, may_borrow=may_borrow)
            if found:
                return found
        return []

    def _list_candidates(
        self, asker: Asker, asked: q.Asked
    ) -> tuple[Sequence[Candidate], Sequence[bool]]:
        if self._rules.strategies is None:
            return self._candidates.list_by_position(asker, asked)
        return self._candidates.list_by_share(asker, asked), ()

    def list_candidates(self, asker: Asker) -> Sequence[Candidate]:
        """List all who may be asked to go for a workload, whether or not they are enough."""
        return self._list_candidates(asker, self._make_asked(asker))[0]

    def list_movable(self, asker: Work, needs_place: Callable[[Work], bool]) -> list[Work]:
        """List who may be moved for a workload, in the order in which they are tried."""
        return self._candidates.list_movable(asker, needs_place)

    def simulate(self, asker: Asker, column: Column, amount: int, height: int) -> tuple[Mode, int]:
        """Find out whether others could give an amount of one column back, and how high the queue borrows afterwards.

        Places do not count here. ``height`` is how high it borrows as long as everybody stays.
        """
        alone = asker._replace(amounts={column: amount}, needed=[column])
        victims = self.find_victims(alone)
        if not victims:
            return Mode.NO_CANDIDATES, height
        rows = [self._tree.held.find_row(one.key) for one in victims]
        for row in rows:
            reclaim.move_workload(self._tree.handle, self._tree.held.handle, row, -1)
        height = self._find_height(alone)
        for row in rows:
            reclaim.move_workload(self._tree.handle, self._tree.held.handle, row, 1)
        is_own = any(self._works[one.key].queue == asker.queue.name for one in victims)
        return Mode.PREEMPT if is_own else Mode.RECLAIM, height

    def _find_height(self, asker: Asker) -> int:
        asked = self._make_asked(asker)
        judged = np.zeros((q.N_JUDGED, len(asker.amounts)), np.int64)
        quotas.judge_amounts(self._tree.handle, asked.queue, asked.columns, asked.amounts, judged)
        return int(judged[q.JUDGED_HEIGHT].max())

    def _make_asked(self, asker: Asker) -> q.Asked:
        places = self._tree.columns
        columns, amounts = self._tree.make_arrays(asker.amounts)
        return q.Asked(
            queue=self._tree.queues[asker.queue.name],
            columns=columns,
            amounts=amounts,
            needed=np.array([places[one] for one in asker.needed], np.int64),
        )

    # By priorities, and by how near quota is in the tree.

    def _take(
        self,
        candidates: Sequence[Candidate],
        asked: q.Asked,
        has_place: HasPlace,
        *,
        may_borrow: bool,
    ) -> list[Victim]:
        """Let candidates go until there is quota and a place, then put back all who can stay."""
        tree, held = self._tree.handle, self._tree.held.handle
        going = _make_going(candidates)
        found: list[int] = []
        while reclaim.take_next(tree, held, asked, going, may_borrow):
            taken = going.taken[: going.n_taken[0]].tolist()
            if has_place([self._name(candidates, i) for i in taken]):
                found = self._spare(candidates, asked, going, has_place, may_borrow=may_borrow)
                break
        else:
            reclaim.put_back(tree, held, going)
        return [Victim(self._name(candidates, i), candidates[i].why) for i in found]

    def _name(self, candidates: Sequence[Candidate], i: int) -> str:
        return self._tree.held.keys[candidates[i].row] or ""

    def _spare(
        self,
        candidates: Sequence[Candidate],
        asked: q.Asked,
        going: q.Going,
        has_place: HasPlace,
        *,
        may_borrow: bool,
    ) -> list[int]:
        """Put back all who can stay, the last who was taken but one first; return who goes. All are back in the end."""
        tree, held = self._tree.handle, self._tree.held.handle
        taken = going.taken[: going.n_taken[0]].tolist()
        left = dict.fromkeys(taken)
        # Most searches are for quota alone, and the list of names grows with the square of the victims.
        asks_for_place = has_place is not needs_no_place
        for k in range(len(taken) - 2, -1, -1):
            if not reclaim.spare_next(tree, held, asked, going, k, may_borrow):
                continue
            del left[taken[k]]
            if asks_for_place and not has_place([self._name(candidates, i) for i in left]):
                left[taken[k]] = None
                reclaim.move_workload(tree, held, candidates[taken[k]].row, -1)
        for i in left:
            reclaim.move_workload(tree, held, candidates[i].row, 1)
        # In the order in which they were taken, the last one in the place of each that stays.
        return [i for i in taken if i in left]

    # By shares.

    def _take_by_share(
        self,
        candidates: Sequence[Candidate],
        asked: q.Asked,
        has_place: HasPlace,
        strategies: tuple[str, ...],
    ) -> list[Victim]:
        tree, held = self._tree.handle, self._tree.held.handle
        going = _make_going(candidates)
        self._charge(asked, 1)
        fair = self._make_fair(asked, candidates, range(len(candidates)))
        rule, found = _RULES[strategies[0]], False
        while not found and reclaim.take_next_fairly(
            tree, held, asked, going, fair, rule, self._said
        ):
            found = self._is_placed(candidates, going, has_place)
        if not found and len(strategies) > 1:
            refused = fair.retried[: fair.n_retried[0]].tolist()
            again = self._make_fair(asked, candidates, refused)
            again.reasons[:] = fair.reasons
            fair = again
            while not found and reclaim.take_refused(tree, held, asked, going, fair, self._said):
                found = self._is_placed(candidates, going, has_place)
        self._charge(asked, -1)
        if not found:
            reclaim.put_back(tree, held, going)
            return []
        left = self._spare(candidates, asked, going, has_place, may_borrow=True)
        return [Victim(self._name(candidates, i), _REASONS[int(fair.reasons[i])]) for i in left]

    def _is_placed(
        self, candidates: Sequence[Candidate], going: q.Going, has_place: HasPlace
    ) -> bool:
        taken = going.taken[: going.n_taken[0]].tolist()
        return has_place([self._name(candidates, i) for i in taken])

    def _charge(self, asked: q.Asked, sign: int) -> None:
        quotas.charge_queue(self._tree.handle, asked.queue, asked.columns, asked.amounts, sign)

    def _make_fair(
        self, asked: q.Asked, candidates: Sequence[Candidate], some: Sequence[int]
    ) -> q.Fair:
        """Make the search for those of some candidates who give way, each queue with its candidates in their order."""
        tree, n = self._tree, len(candidates)
        n_nodes = len(tree.nodes)
        path = np.zeros(n_nodes, np.bool_)
        path[tree.paths[asked.queue][1:]] = True
        children: list[int] = []
        first_child = [0]
        for node in range(n_nodes):
            children += tree.list_children(node)
            first_child.append(len(children))
        node_of = [int(tree.held.handle.node[one.row]) for one in candidates]
        queued = sorted(some, key=lambda i: node_of[i])
        first, end = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
        for place, i in enumerate(queued):
            if end[node_of[i]] == 0:
                first[node_of[i]] = place
            end[node_of[i]] = place + 1
        return q.Fair(
            path=path,
            children=np.array(children, np.int64),
            first_child=np.array(first_child, np.int64),
            is_queue=np.array([one.is_queue for one in tree.nodes], np.bool_),
            queued=np.array(queued, np.int64),
            first=first,
            end=end,
            pruned=np.zeros(n_nodes, np.bool_),
            retried=np.zeros(n, np.int64),
            n_retried=np.zeros(1, np.int64),
            reasons=np.zeros(n, np.int64),
        )


def _make_going(candidates: Sequence[Candidate]) -> q.Going:
    n = len(candidates)
    return q.Going(
        rows=np.array([one.row for one in candidates], np.int64),
        above=np.array([one.above for one in candidates], np.int64),
        is_strict=np.array([one.is_strict for one in candidates], np.bool_),
        taken=np.zeros(n, np.int64),
        n_taken=np.zeros(1, np.int64),
        at=np.zeros(1, np.int64),
    )
