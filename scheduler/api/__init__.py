"""The vocabulary: what Evenkeel reads from Kubernetes and what it decides, as plain values.

Belongs here: typed wire formats (``wire``), names of annotations and resources (``names``),
quantities, HAMi's encodings (``hami``), a pod's requests (``requests``, ``templates``) and its
terms about nodes and other pods (``selectors``, ``affinity``, ``spread``, ``images``), events in, decisions out,
reasons for refusals. Does not belong here: anything that remembers (``state``), talks (``kube``) or chooses
(``cycle``).

Decision (2026-11): wire structs are msgspec's, not the standard library's. Decoding only the
fields used costs 8 µs a pod against 100 µs for a dictionary, and every pod of the cluster is decoded here.
"""
