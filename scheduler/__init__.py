"""Evenkeel: a scheduler for Kubernetes that picks the node and the GPUs on it.

Events change the arrays, the cycle reads the arrays and returns decisions, the binder carries them out,
and its results come back as events. The map, from the top; a room imports only rooms below it:

    cli        run | rerun | simulate | replay | audit | demo | warm
    demo       four patterns on the embedded cluster, drawn
    kube       SHELL: a real cluster: watch, bind, report, lead, and the app that wires them
    simulate   SHELL: the same core over manifests
    replay     SHELL: the same core over traces of real clusters, in virtual time
    audit      SHELL: free capacity that no pod can use, in its own units and in money
    embedded   a small Kubernetes in a process, with agents, for the demo and for tests
    progress   shows on a terminal how far a command is
    printing   tables and files of commands
    engine     the one door: handle(event, now), decide(now, allowance) → Outcome
    measure    what of each node is used, free and stranded
    cycle      shapes and boards, decisions, and why nothing fits
    modes      what scoring modes learn          waiting  pods that wait, and which of them a change helps
    plugins    static filters and preferences, one file each
    devices    what requests for cards mean
    state      the cluster as columns: events in, assume, forget, checks
    kernels    the only numba: fit, cards, scores, tournament
    schema     the array bundles that state owns and kernels take
    config     every setting with its default
    api        the words: wire formats, quantities, encodings of devices, events, decisions, reasons
    errors     the tree of errors
"""
