"""Kubernetes' own end-to-end suite, [sig-scheduling], run once with kube-scheduler and once with Evenkeel in its place.

What belongs here: which specs are run and how one is (`suite`), the clusters that they run in
(`cluster`, with `stages.yaml` and `kubelet.yaml` for what kwok does in a kubelet's place), the work
shared out among clusters (`lanes`), and how the two come out side by side (`table`). What does not:
tests of our own.

`make conformance` is `python -m tests.conformance`. A spec is marked Serial when it wants a cluster for
itself; each gets one, so that several run at a time all the same.
"""
