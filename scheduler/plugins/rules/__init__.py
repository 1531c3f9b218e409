"""One file for each rule; a rule that kube-scheduler has too has the same name.

Belongs here: modules that make one ``RULE`` and know of no other rule. Does not belong here: what all rules have in
common (``contract``), and the list of all rules (``table``).
"""
