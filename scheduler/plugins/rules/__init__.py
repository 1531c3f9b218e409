"""One file a rule, named after kube-scheduler's where it has it.

Belongs here: modules that make one ``RULE``, and know of no other. Does not belong here: what all rules have in
common (``contract``), and the list of them (``table``).
"""
