"""Makes the pods that the controllers of workloads would make.

Belongs here: the pods of each controller of Kubernetes, with their names, labels and owners, and how many of them
exist already. Does not belong here: where these pods go.
"""
