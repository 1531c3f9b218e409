"""What the engine does when a node comes, changes or goes, when its device plugin falls silent, and when its cards get well."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from scheduler.api import wire
from scheduler.api.door import events, notes
from scheduler.api.door.notes import Note
from scheduler.config import Config
from scheduler.state.cluster import Cluster
from scheduler.waiting.pending import Pending

_NOTHING: tuple[Note, ...] = ()


class NodeEvents:
    """Applies events about nodes."""

    def __init__(
        self,
        config: Config,
        cluster: Cluster,
        pending: Pending,
        note: Callable[[str], None],
    ) -> None:
        """Make the keeper of nodes.

        Args:
            config: says for how long no new pod gets a card that was ill.
            cluster: the cluster.
            pending: the pods that wait.
            note: hears the name of each node that has come, has other taints or is gone.
        """
        self._cluster, self._pending, self._note = cluster, pending, note
        self._probation_seconds = config.card_probation_seconds

    def see_node(self, node: wire.Node, now: float) -> Sequence[Note]:
        """Take over a node as it is."""
        registers, nodes = self._cluster.registers, self._cluster.nodes
        before = self._cluster.find_facts(node.metadata.name)
        row = nodes.find_row(node.metadata.name)
        ill = registers.list_by_health(row, healthy=False) if row >= 0 else set[str]()
        after = self._cluster.see_node(node)
        if ill:
            row = nodes.find_row(after.name)
            well = ill & registers.list_by_health(row, healthy=True)
            self.put_on_probation(after.name, dict.fromkeys(well, now + self._probation_seconds))
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
        self._cluster.registers.probation.drop_node(name)
        self._note(name)
        return _NOTHING

    def put_on_probation(self, node: str, cards: Mapping[str, float]) -> None:
        """Keep new pods off cards of a node, of each until a time."""
        if cards:
            self._cluster.registers.probation.begin(node, cards)
            self._close_again(node)

    def restore_probation(self, event: events.CardsOnProbation, _: float) -> Sequence[Note]:
        """Take over which cards are on probation."""
        self.put_on_probation(event.node, event.until)
        return _NOTHING

    def find_due(self) -> float:
        """Return when ``end_probation`` is due next; infinite when it is not."""
        return self._cluster.registers.probation.find_due()

    def end_probation(self, now: float) -> None:
        """Give cards to new pods again whose probation is over."""
        for node in self._cluster.registers.probation.end_due(now):
            self._close_again(node)

    def _close_again(self, node: str) -> None:
        row = self._cluster.nodes.find_row(node)
        if row >= 0:
            self._cluster.close_cards(node, closed=bool(self._cluster.nodes.silent[row]))

    def retry_pod(self, event: events.BindFailed, now: float) -> None:
        """Let a pod wait again whose bind failed: without backoff if its turn did not come before a node that is closed or gone."""
        node, nodes = event.behind, self._cluster.nodes
        row = nodes.find_row(node)
        is_gone = bool(node) and row < 0
        is_silent = row >= 0 and bool(nodes.silent[row])
        at_once = is_gone or (is_silent and self._pending.await_turns(event.uid, node))
        self._pending.retry_pod(event.uid, now, at_once=at_once)

    def note_silence(self, event: events.PluginSilent, now: float) -> Sequence[Note]:
        """Close the cards of a node whose device plugin does not answer, and open them again."""
        self._cluster.close_cards(event.node, closed=event.silent)
        if not event.silent:
            self._pending.begin_turns(event.node, self._cluster.nodes.find_row(event.node), now)
        if event.silent and self._cluster.find_facts(event.node) is not None:
            return (notes.PluginFellSilent(event.node, event.waits_for),)
        return _NOTHING
