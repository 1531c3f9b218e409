"""Evenkeel: a scheduler for Kubernetes that picks the node and the GPUs on it.

Events change the arrays, the cycle reads the arrays and returns decisions, the binder carries them out,
and its results come back as events. The map, from the top; a room imports only rooms below it:

    cli        run | simulate | replay | audit | demo | warm
    demo       four patterns on the embedded cluster, drawn
    kube       SHELL: a real cluster: streams, loop, binder, lease, events, probes
    simulate   SHELL: the same core over manifests, and over traces of real clusters
    audit      SHELL: what a cluster cannot use, in its own units and in money
    embedded   a small Kubernetes in a process, with agents, for the demo and for tests
    metrics    numbers for Prometheus
    cycle      shapes and boards, decisions, why nothing fits
    plugins    static filters and preferences, one file each
    devices    what words about cards mean        policies  which BalancePolicy governs a pod
    pending    what waits, and whom a change helps explain   reasons to sentences
    state      the cluster as columns: events in, assume, forget, checks
    kernels    the only numba: fit, cards, scores, tournament
    config     every setting with its default
    api        the words: wire formats, quantities, HAMi's encodings, events, decisions, reasons
    errors     the tree of errors
"""
