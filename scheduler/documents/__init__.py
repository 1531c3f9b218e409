"""Text of files, and the YAML or JSON in it, as kubectl reads them. Every room that reads a file reads it here.

Belongs here: encodings, documents, what a word of YAML is, and how large a text may unfold. Does not belong here: what
the documents mean.
"""
