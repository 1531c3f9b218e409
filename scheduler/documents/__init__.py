"""Reads the text of files, and the YAML or JSON in it, as kubectl does. Every room that reads a file reads it here.

Belongs here: encodings, documents, the meaning of YAML's words, and bounds for unfolded texts. Does not belong here:
the meaning of the documents.
"""
