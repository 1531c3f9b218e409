"""The webhook for jobs and pods with a queue: it has them wait from their creation on, and refuses what cannot be.

It decides nothing and writes nothing but its own certificate. What each kind gets and what is checked are functions of
the object alone, and of the little in ``Known``.
"""
