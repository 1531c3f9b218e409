"""The webhook for jobs and pods with a queue, and for pods with devices.

It has the first wait from their creation on, gives the others what they lack, and refuses what cannot be. It decides nothing and writes nothing but its own certificate. What each kind gets and what is checked are functions of
the object alone, of settings, and of the little in ``Known``.
"""
