"""The controllers of workloads: they make and delete pods from templates, and do no more.

What belongs here: Deployments, ReplicaSets, StatefulSets and Jobs, each as a pure function from an
object and what it owns to a ``Plan``; ``controllers`` carries plans out. What does not: anything that
looks into a pod, which is the kubelet's.

Simpler than kube-controller-manager: a Deployment whose template changes first ends its old pods and
then starts new ones, whatever its strategy says; nothing is adopted or released by labels; pods that
have ended are replaced at once. A Job's pod ends when the kubelet agent ends it, after the seconds
that its annotation ``evenkeel.dev/run-seconds`` names; without one it runs until it is deleted.
"""
