"""Random worlds in which one group of pods comes, asked of kube-scheduler with its gates for groups and of Evenkeel.

Worlds leave kube-scheduler one choice where it can be had: each pod likes each node more or less than any other one.
Which of two domains it takes that are equally good is chance, and so is the domain of which it tells the first status;
so a world in which the two differ is loaded anew some times, and one answer of Evenkeel's own is enough.
"""
