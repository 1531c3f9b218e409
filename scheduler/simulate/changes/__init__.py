"""What if: changes to what was read, before anything is placed.

Belongs here: nodes that go, close or come, workloads that grow or shrink, and the pods that this sets free. Does
not belong here: where those pods go.
"""
