"""Which devices and classes there are: slices, rules about taints and classes as the API server has them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from scheduler.api.claims import devices, objects
from scheduler.api.claims.devices import DeviceClass, PoolKey
from scheduler.api.claims.extended import choose_classes
from scheduler.api.claims.wanted import CLASS_PREFIX
from scheduler.state.claims.inventory import Inventory
from scheduler.state.nodes import NodeTable

# So many slices wait until their pools are written together.
_FRESH_MAX = 512


class Supply(ABC):
    """The devices and classes of one cluster; who holds devices is known to those who inherit it.

    Attributes:
        inventory: slices, pools and devices; ``table`` has its columns.
        classes: by name.
        backing: by extended resource the class that serves it where no device plugin does.
        version: rises when a class changes, or what is in ``backing``.
        n_helpful: rises when waiting pods may find devices.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self.inventory = Inventory(nodes)
        self.table = self.inventory.table
        self.classes: dict[str, DeviceClass] = {}
        self.backing: dict[str, str] = {}
        # How many pods request each resource that is named after a class.
        self._implicit: Counter[str] = Counter()
        self.version, self.n_helpful = 0, 0
        # Pools that are to be written anew, and rows of nodes that this may concern.
        self._stale: dict[PoolKey, None] = {}
        self._concerned: set[int] = set()

    @property
    @abstractmethod
    def _is_trying(self) -> bool:
        """Whether a trial is open, in which no column may be laid out anew."""

    @abstractmethod
    def _note_backing(self, changed: Collection[str]) -> None:
        """Note that other classes stand behind some resources, or none any more, or that one does now."""

    @abstractmethod
    def _write_pools(self, pools: Sequence[PoolKey], concerned: set[int]) -> None:
        """Write pools anew while nothing of them is charged."""

    def see_class(self, found: objects.DeviceClass) -> None:
        """Take over a class."""
        new = devices.read_class(found)
        if self.classes.get(new.name) != new:
            self.classes[new.name] = new
            self.version += 1
            self.n_helpful += 1
            self._choose_classes()

    def drop_class(self, name: str) -> None:
        """Forget a class that was deleted."""
        if self.classes.pop(name, None) is not None:
            self.version += 1
            self._choose_classes()

    def _count_implicit(self, resources: Iterable[str], by: int) -> None:
        """Count pods that request resources which are named after classes."""
        named = {one for one in resources if one.startswith(CLASS_PREFIX)}
        for one in named:
            self._implicit[one] += by
            if not self._implicit[one]:
                del self._implicit[one]
        if named:
            self._choose_classes()

    def _choose_classes(self) -> None:
        """Find anew which class stands behind each resource."""
        before, now = self.backing, choose_classes(self.classes.values(), self._implicit)
        if before == now:
            return
        self.backing = now
        self.version += 1
        self._note_backing({one for one in {*before, *now} if before.get(one) != now.get(one)})

    def see_slice(self, found: objects.ResourceSlice) -> None:
        """Take over a slice.

        Raises:
            BadInput: the slice cannot be read; it counts as gone.
        """
        name = found.metadata.name
        if self.inventory.has_same(found):
            return
        try:
            new = devices.read_slice(found)
        except Exception:
            self.drop_slice(name)
            raise
        old = self.inventory.find_pool(name)
        self._note_stale({new.pool} if old is None else {old, new.pool})
        self.inventory.keep_slice(found, new)
        if self.inventory.n_fresh > _FRESH_MAX:
            # Slices take far more memory as they were parsed than in the columns.
            self.flush()

    def drop_slice(self, name: str) -> None:
        """Forget a slice that was deleted."""
        pool = self.inventory.find_pool(name)
        if pool is not None:
            self._note_stale([pool])
            self.inventory.drop_slice(name)

    def list_rules(self) -> Collection[str]:
        """List the names of the rules about taints that taint any devices."""
        return self.inventory.rules

    def see_rule(self, found: objects.DeviceTaintRule) -> None:
        """Take over a rule about taints."""
        self._change_rule(found.metadata.name, devices.read_taint_rule(found))

    def drop_rule(self, name: str) -> None:
        """Forget a rule that was deleted."""
        self._change_rule(name, None)

    def _change_rule(self, name: str, new: devices.TaintRule | None) -> None:
        rules = self.inventory.rules
        old = rules.pop(name, None)
        if new is not None:
            rules[name] = new
        if old == new:
            return
        about = [one for one in (old, new) if one is not None]
        pools = self.inventory.list_pools()
        self._note_stale([pool for pool in pools if any(one.is_near(pool) for one in about)])

    def _note_stale(self, pools: Iterable[PoolKey]) -> None:
        """Note that pools have to be written anew, and which nodes that may concern."""
        some = list(pools)
        self._stale.update(dict.fromkeys(some))
        self._concerned |= self.inventory.list_concerned(some)
        self.n_helpful += 1

    def flush(self) -> None:
        """Write the pools anew of which slices or rules have changed, all of them together; nothing within a trial.

        Until then the columns are as they were before. A list of slices has many of one pool.
        """
        if not self._stale or self._is_trying:
            return
        stale, concerned = self._stale, self._concerned
        self._stale, self._concerned = {}, set()
        self._write_pools(list(stale), concerned)
