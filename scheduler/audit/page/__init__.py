"""Writes the audit as one HTML file that needs nothing else: no script, no font, no network.

Belongs here: ``page`` puts the file together, ``charts`` draws bars, ``fleet`` shows every node, ``parts`` has the
pieces of HTML that these share, and ``style`` is the look on a screen, a phone and paper. Does not
belong here: figures and sentences that the table on the terminal shows, too.
"""
