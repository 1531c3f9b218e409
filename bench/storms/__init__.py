"""A storm: 20,000 pods that fit nowhere, and 100 changes of nodes a second. How long do pods wait that do fit?

What belongs here: the pods and what happens to nodes (``weather``), in the engine alone (``alone``) and on a real
API server (``served``).
"""
