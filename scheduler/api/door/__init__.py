"""What passes the engine's door: events in, decisions and notes out.

Belongs here: plain values that a log can keep and replay. Does not belong here: the code that makes or reads them.
"""
