"""What the rule about ResourceClaims is made of.

``needs`` is what a pod's claims mean for where it can go; ``masks`` evaluates selectors; ``compiling`` makes what the kernel
reads; ``answering`` makes what is written to a claim. ``offers`` finds where classes serve extended resources.
"""
