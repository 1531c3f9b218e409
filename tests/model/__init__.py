"""A cluster as a model in memory, for all tests that need one: its API server, its objects, its life.

What belongs here: the one model of the API server and its rules (``server``), streams of its changes that
deliver late (``streams``), nodes and pods drawn from a seed (``clusters``, ``workloads``), those of special
worlds (``peer_worlds`` for pods with rules about other pods, ``card_situations`` for the cards of one node in
all states), and a cluster that follows a server through what may happen (``life``, ``wild``). What does not:
time, processes and the network, which are in tests/virtual, and what the scheduler should answer, which is in
tests/oracles.
"""
