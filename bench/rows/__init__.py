"""Pods a second on a real API server, and in the engine alone: one row for each thing that pods can ask.

What belongs here: what a row is (``row``) and the table of them (``table``), how one scheduler is measured on one
row (``measuring``), several in turns (``comparing``), the engine without an API server (``alone``, ``memory``),
and how the result is printed (``printed``). What does not: programs that run beside a scheduler, which are in
``bench.beside``.
"""
