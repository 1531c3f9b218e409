"""Sentences as they were before they were wrapped."""


def unwrapped(text: str) -> str:
    """Each sentence on one line: what continues a sentence is indented by two blanks."""
    return text.replace("\n  ", " ")
