"""A real control plane, for the cluster tests and the benchmarks.

What belongs here: how its programs are built (`build`, and a Go module each under `tools/`), what
they are told on the command line (`commands`), how they are started, watched and killed
(`processes`, `watchdog`), the control plane made of them (`plane`), ways to talk to it
(`access`), and quick ways to fill it (`objects`). What does not: tests, and anything that knows
how Evenkeel works.

A session in short::

    with plane.start() as cp:
        asyncio.run(objects.create_many(cp, [objects.node(f"n{i}") for i in range(5_000)]))
        print(cp.kubectl("get", "nodes"))

To move to another version, change it in the module's go.mod (for Kubernetes also in every line
of its `replace` list) and run `go mod tidy` there; the next run builds it.
"""
