"""A small Kubernetes cluster in one process, to try and test the operator with nothing but Python.

What belongs here: an API server over HTTP (``server``) with its store, and agents that play the
kubelet, HAMi's device plugin and the controllers of workloads (``agents``). What does not: anything the operator itself runs.
Nothing in here imports ``scheduler.kube``, ``scheduler.simulate`` or the core; the operator meets
this package over HTTP only, as it meets a real kube-apiserver 1.37, whose behaviour is copied
wherever kopf, kubectl or the operator can see it.

Reading order, from the bottom up:

    store/            statuses    errors as the ``Status`` objects a client gets
                      kinds       which kinds are served, built in or by a CustomResourceDefinition
                      selectors   label and field selectors
                      store       objects, versions, history, watchers: etcd and the watch cache
                      metadata    names, uids, generations
    api/admission/    pods        defaults, admission, validation and binding of pods; ``amounts``
                      workloads   the same for workloads, which make pods from templates; ``devices`` for claims
                      admission   the same for all other kinds
                      schemas     validation and pruning by a CRD's schema; ``crds``
    api/writing/      patching    JSON and merge patches; ``strategic`` and ``applying`` have the other kinds
                      registry    create, update, delete: an object on its way into the store; ``scales``
                      namespaces  the namespace controller
    api/              listing     lists with pages and snapshots; ``watching`` has the watches
                      serving     keeps the kinds in step with the CRDs
                      tables      what ``kubectl get`` prints; ``discovery`` has what clients ask first
                      server      HTTP: ``paths``, media types (``bodies``, ``protobuf``), ``verbs``
    agents/           nodes       node objects, plain or with GPU ``cards``
                      fleet       ``async with fleet.run(url)``: ``kubelet``, ``hami_plugin``, ``dra_driver``
                      claims      ``claims.run(url)``: ResourceClaims from templates; ``dra_devices`` are what drivers publish
                      workloads/  ``controllers.run(url)``: pods of Deployments, ReplicaSets, StatefulSets, Jobs
    cluster           everything on a loopback port: ``async with cluster.start() as c: c.url``

The scope is frozen: a new kind is a line in ``store/builtin``. No more protobuf, server-side apply or
likeness to kubectl; tests that need more run against a real API server.

Decision (2026-11): the cluster is written by hand and not with a mocking library, because versions, conflicts,
watches and bindings are exactly what an operator's tests are about, and mocks leave them out.
"""
