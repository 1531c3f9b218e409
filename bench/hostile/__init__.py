"""A hostile tenant against normal work, on a real API server: time to bind, leases lost, memory.

Every second a normal CPU pod and a normal GPU pod (a share of a card) are created on 500 plain and 10 GPU
nodes, while a tenant who may only create pods attacks from a namespace of its own (or, all attacks at once,
from several). The attacks: tests/operator/attacks.py; those that also change and delete objects:
tests/operator/paced_attacks.py.

Every attack is made on two replicas of Evenkeel, as installed, and again on kube-scheduler, which gets the CPU
pods only: it cannot place a share of a card. ``bulk`` also restarts the leader in its middle, which is then the
standby.

An API server under attack is slow for everyone, and its watches lag. A null scheduler shows how slow, in the
same run: it binds a third pod a second, watches nothing but these pods, and does not think.
"""
