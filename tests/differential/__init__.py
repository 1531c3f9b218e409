"""Evenkeel against the real kube-scheduler: random clusters from a seed, the same question to both, answers compared.

- ``worlds``: a cluster and the pods that come to it, one after the other, from a seed and a choice of features.
- ``features``: what nodes, running pods and incoming pods may say, one feature a function or two, in one table.
- ``oracle``: kube-scheduler on a real API server; ``scheduler_log`` reads its log, where it prints every score.
- ``allocations``: what claims get, in a form in which both sides' can be compared.
- ``ours``: the engine on the same objects, as the API server gives them back.
- ``compare``: what is the same and what is not; ``known``: differences that stay, with a reason each.
- ``run``: many worlds, counts, and a file for each case that differs.

A world gives several cases: what kube-scheduler chose for one pod is where both find it for the next one.

    make differential ARGS="--cases 200 --seed 7"
"""
