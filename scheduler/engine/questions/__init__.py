"""What shells can ask of the engine: a closed family of questions, each with the type of its answer.

Belongs here: frozen questions, and answers that are data: facts, figures, columns that are copies. Does not belong
here: how a question is answered (``answers``), and an answer through which somebody could reach the state or change it.
"""
