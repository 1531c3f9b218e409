"""How pods with devices are admitted, as HAMi's webhook does it: what is refused, and what a pod gets.

Belongs here: the order of the decisions (``steps``), one file for each vendor with what it adds to a container, and the pod
while it is changed (``drafts``). Does not belong here: reviews and the server (``kube/webhook``), which quota a namespace has.
"""
