"""Keeps the ConfigMaps that configure devices: a change puts other drivers in place, and a mistake changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scheduler.api import kinds
from scheduler.api.door import notes
from scheduler.api.door.notes import Note
from scheduler.api.steering import ConfigMap
from scheduler.config import Config
from scheduler.devices import settings
from scheduler.engine.keeping import Keeper
from scheduler.errors import BadInput
from scheduler.state import taking_up
from scheduler.state.cluster import Cluster
from scheduler.waiting.pending import Pending


class DeviceMaps:
    """What devices are configured with; where it cannot be read, it is as it was before."""

    def __init__(
        self, config: Config, cluster: Cluster, pending: Pending, recount: Callable[[], None]
    ) -> None:
        """``recount`` is called when resources may stand for other devices than before."""
        self._recount = recount
        self._config, self._cluster, self._pending = config, cluster, pending
        self._settings = settings.FIRST
        self._keys: set[str] = set()

    def make_keeper(self) -> Keeper:
        """Make the keeper of ConfigMaps."""
        return Keeper(self._see, self._drop, lambda: self._keys)

    def _see(self, found: ConfigMap, now: float) -> Sequence[Note]:
        key, before, problem = kinds.make_key(found), self._settings, ""
        if key not in self._config.config_maps:
            return ()
        self._keys.add(key)
        try:
            self._take_up(found)
        except BadInput as error:
            problem = str(error)
        if self._settings is before:
            return (notes.DeviceMapRead(key, found.metadata, problem),)
        self._pending.retry_all(now)
        return (notes.DeviceMapRead(key, found.metadata, problem, self._settings),)

    def _take_up(self, found: ConfigMap) -> None:
        read = settings.read_map(self._config, found, self._settings)
        if read != self._settings:
            drivers = settings.make_drivers(self._config, read)
            taking_up.take_up_drivers(self._cluster, drivers, settings.make_key(read))
            self._settings = read
            self._recount()

    def _drop(self, key: str, _: float) -> Sequence[Note]:
        """Note that a ConfigMap is gone; what it said stays in force."""
        if key not in self._keys:
            return ()
        self._keys.remove(key)
        return (notes.DeviceMapLeft(key),)
