"""The shell around a real cluster: everything that talks to Kubernetes.

Belongs here: streams in, binds and events out, the lease, probes. ``parts`` has all of them wired, ``running`` lets
them work, and ``app`` is the process around them, with kopf in it.
Does not belong here: any choice of a node or a card.

Decision (2026-11): pods and nodes do not pass through kopf handlers (0.9 ms an event against 20 µs for
a raw stream into typed structs, and its index is quadratic); kopf watches BalancePolicies and
namespaces, which are few.
"""
