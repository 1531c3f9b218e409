"""The audit as one HTML file that needs nothing else: no script, no font, no network.

Belongs here: ``page`` puts it together, ``charts`` are bars, ``fleet`` shows every node, ``parts`` are the
pieces of HTML that these share, and ``style`` is how it looks on a screen, a phone and paper. Does not
belong here: figures and sentences that the table on the terminal shows too.
"""
