"""The further families of devices that a pod asks for: ``Ask.more`` has an ask for each."""

from __future__ import annotations

from scheduler.kernels import _handles
from scheduler.kernels._jit import is_compiled, part
from scheduler.kernels.devices import gpus, pools
from scheduler.schema import columns as c

if is_compiled():
    read_ask = _handles.read_ask
else:

    def read_ask(ask: c.Ask) -> c.Ask:
        """Return the ask; Python reads the asks themselves where kernels read their addresses."""
        return ask


@part
def suffice(nodes: c.Nodes, cards: c.Cards, ask: c.Ask, row: int, s: c.Scratch) -> bool:
    """Whether the node has the devices of all further families that the pod asks for."""
    for i in range(len(ask.more)):
        one = read_ask(ask.more[i])
        if pools.is_by_cards(nodes, one, row) and gpus.choose_cards(nodes, cards, one, row, s) < 0:
            return False
    return True
