"""What the engine does when a node comes, changes or goes, and when its device plugin falls silent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scheduler.api import wire
from scheduler.api.door import events, notes
from scheduler.api.door.notes import Note
from scheduler.state.cluster import Cluster

_NOTHING: tuple[Note, ...] = ()


class NodeEvents:
    """Applies events about nodes."""

    def __init__(self, cluster: Cluster, note: Callable[[str], None]) -> None:
        """``note`` hears the name of each node that has come, has other taints or is gone."""
        self._cluster, self._note = cluster, note

    def see_node(self, node: wire.Node, _: float) -> Sequence[Note]:
        """Take over a node as it is."""
        before = self._cluster.find_facts(node.metadata.name)
        after = self._cluster.see_node(node)
        if before is None or before.taints != after.taints:
            self._note(after.name)
        read = notes.NodeRead(after.name)
        if before is not None and before.devices == after.devices:
            return (read,)
        # The annotations of pods about their cards are judged by the node's cards, which may be reported after the pods.
        return (read, *(notes.PodBound(uid) for uid in self._cluster.pods_on.get(after.name, ())))

    def drop_node(self, name: str, _: float) -> Sequence[Note]:
        """Forget a node."""
        self._cluster.drop_node(name)
        self._note(name)
        return _NOTHING

    def note_silence(self, event: events.PluginSilent, _: float) -> Sequence[Note]:
        """Close the cards of a node whose device plugin does not answer, and open them again."""
        self._cluster.close_cards(event.node, closed=event.silent)
        if event.silent and self._cluster.find_facts(event.node) is not None:
            return (notes.PluginFellSilent(event.node, event.waits_for),)
        return _NOTHING
