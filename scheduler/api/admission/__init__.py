"""What the configuration says of the webhook for pods with devices.

Belongs here: the settings, and how they are read. Does not belong here: what is decided by them (``devices/admission``), and
the server (``kube/webhook``).
"""
