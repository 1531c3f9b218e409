"""Whether devices are held by more claims than may have them, as in a trial in which a pod comes back beside another one."""

from __future__ import annotations

from scheduler.api.claims.devices import PoolKey
from scheduler.schema import devices as d
from scheduler.state.claims.store import Claims
from scheduler.state.pods import PodRecord


def is_overused(claims: Claims, pod: PodRecord) -> bool:
    """Whether a device that a pod's claims have is held by others who exclude it, or more is drawn of it than there is."""
    given = (
        one
        for entry in claims.list_entries(pod)
        for one in claims.find_given((pod.namespace, entry.name or "")) or ()
        if not one.is_admin
    )
    return any(
        _is_device_overused(claims.table.columns, row)
        for one in given
        for row in claims.inventory.find_rows(
            PoolKey(one.device.driver, one.device.pool), one.device.name
        )
    )


def _is_device_overused(columns: d.Devices, row: int) -> bool:
    if columns.owners[row] + (columns.sharers[row] > 0) > 1:
        return True
    if columns.cell[row] >= 0:
        first, n = int(columns.cell[row]), int(columns.n_cells[columns.kind[row]])
        cells = columns.cells[:, first : first + n]
        if (cells[d.USED] > cells[d.TOTAL]).any():
            return True
    for in_set, _ in d.DRAWS:
        if columns.draws[in_set, row] >= 0:
            first, n = columns.sets[: d.SET_LAYOUT, columns.draws[in_set, row]].tolist()
            counters = columns.counters[:, first : first + n]
            if (counters[d.USED] > counters[d.TOTAL]).any():
                return True
    return False
