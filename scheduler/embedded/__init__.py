"""A small Kubernetes cluster in one process: try and test the operator with nothing but Python.

What belongs here: an API server over HTTP (``server``) with its store, and agents that play the
kubelet and HAMi's device plugin (``agents``). What does not: anything the operator itself runs.
Nothing in here imports ``scheduler.kube``, ``scheduler.simulate`` or the core; the operator meets
this package over HTTP only, as it meets a real kube-apiserver 1.36, whose behaviour is copied
wherever kopf, kubectl or the operator can see it.

Reading order, from the bottom up:

    statuses    errors as the ``Status`` objects a client gets
    kinds       which kinds are served, built in or by a CustomResourceDefinition
    selectors   label and field selectors
    store       objects, versions, history, watchers: the etcd and watch cache of this cluster
    metadata    names, uids, generations
    pods        defaults, admission, validation and binding of pods; ``amounts`` reads quantities
    admission   the same for all other kinds; ``events`` converts between the two Event APIs
    schemas     validation and pruning by a CRD's OpenAPI schema; ``crds`` serves the new kinds
    patching    JSON and merge patches; ``strategic`` and ``applying`` are the other two kinds
    registry    create, update, delete: what happens to an object on its way into the store;
                ``deletion``, ``bindings``, ``evictions`` are its special cases
    namespaces  the namespace controller; ``serving`` keeps the kinds in step with the CRDs
    listing     list with pages and snapshots; ``watching`` is the other half
    tables      what ``kubectl get`` prints; ``discovery`` is what it asks first
    server      HTTP: ``paths``, media types (``bodies``, a little ``protobuf``), ``verbs``
    cluster     starts all of it on a loopback port: ``async with cluster.start() as c: c.url``
    nodes       node objects, plain or with GPU ``cards``
    agents      ``async with agents.run(url): ...``: ``kubelet`` and ``hami_plugin`` for any server

Choice (2026-11): written by hand rather than on a mocking library, because versions, conflicts,
watches and bindings are exactly what an operator's tests are about, and mocks leave them out.
"""
