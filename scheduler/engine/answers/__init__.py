"""How the engine answers the questions of ``questions``, from the state, what waits and the cycle.

Belongs here: a function for each question, and the one table of them. Does not belong here: the types of questions
and answers, and whatever changes a decision.
"""
