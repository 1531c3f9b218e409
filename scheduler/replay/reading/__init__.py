"""Reads a trace's files line by line, and names every mistake with its file, line and column.

Belongs here: ``tables`` reads CSV, ``own`` and ``openb`` make nodes and pods from its lines, each in its
format. Does not belong here: which format a folder has, and checks that need the whole trace; see
``traces``.
"""
