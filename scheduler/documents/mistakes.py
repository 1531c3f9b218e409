"""Explains syntax errors of YAML in plain words: the line, and what to look for there."""

from __future__ import annotations

import re

import yaml

TEMPLATE = "is a template of Helm: give what `helm template` prints"
# The beginning of an action in Helm's templates, and actions that only Helm has.
ACTION = "{{"
_OF_HELM = re.compile(
    r"\{\{-?\s*(\.(Values|Release|Chart|Capabilities|Files|Template)\b|(if|with|range|include|template|toYaml|define|else|end)\b)"
)
# The problems of libyaml as patterns, and their meanings; the first pattern that fits counts. ``{0}`` is the first group
# of the pattern, ``{begin}`` the first line of the value that was being read.
_MEANINGS = (
    (r"did not find expected ',' or '([}\]])'", "what is opened in line {begin} lacks a comma, or its {0} at the end"),
    (r"did not find expected node content", "a value is missing here, or a `[` or `{{` before it has no end"),
    (r"did not find expected key", "this is no `key: value` of the map that begins in line {begin}: compare the indents"),
    (r"did not find expected '-' indicator", "this is no `- item` of the list that begins in line {begin}: compare the indents"),
    (r"mapping values are not allowed", "a second `: ` in one line: put the value in quotes, or on a line of its own"),
    (r"could not find expected ':'", "a key without a `:` after it"),
    (r"found unexpected (?:end of stream|document indicator)", "the quote of line {begin} is not closed"),
    (r"found (?:undefined|unknown escape|duplicate).*|did not find expected hexdecimal.*|found invalid Unicode.*",
     "in double quotes a backslash begins an escape, and this one is none: use single quotes"),
    (r"block sequence entries are not allowed", "a list may not begin here: put its first `- ` on a line of its own"),
    (r"(?:unknown anchor|found undefined alias) '?([^' ]*)'?.*", "`*{0}` refers to nothing: no `&{0}` stands before it"),
    (r"found a tab character.*", "a tab: indent with spaces"),
)  # fmt: skip
_UNKNOWN = re.compile(r"unknown anchor '([^']*)'")
_NO_START = re.compile(r"found character that cannot start any token|block mapping values")


def is_template(text: str) -> bool:
    """Whether a text that is no YAML is a template of Helm."""
    return _OF_HELM.search(text) is not None


def explain_error(text: str, lines: int, error: Exception) -> str:
    """Explain an error by place and problem, such as ``line 3, column 2: a tab: indent with spaces``.

    Args:
        text: the text of the document.
        lines: the number of lines before it in the file, because people count in the file.
        error: the error of the library that reads it.
    """
    said = " ".join(str(error).split())
    if isinstance(error, yaml.MarkedYAMLError):
        said = " ".join(str(error.problem or error.context).split())
        mark = error.problem_mark or error.context_mark
        begin = error.context_mark or mark
    elif found := _UNKNOWN.search(said):
        # libyaml does not give the place.
        at = text.find(f"*{found[1]}")
        line = text.count("\n", 0, at)
        mark = begin = yaml.Mark("", at, line, at - text.rfind("\n", 0, at) - 1, None, 0)
    else:
        mark = begin = None
    if mark is None or begin is None:
        return _find_meaning(said, "", lines + 1)
    every = text.splitlines()
    rest = every[mark.line][mark.column :] if mark.line < len(every) else ""
    where = f"line {mark.line + lines + 1}, column {mark.column + 1}"
    return f"{where}: {_find_meaning(said, rest, begin.line + lines + 1)}"


def _find_meaning(problem: str, rest: str, begin: int) -> str:
    if _NO_START.search(problem) and rest:
        if rest[0] == "\t":
            return "a tab: indent with spaces"
        return f"no value begins with `{rest[0]}`: put it in quotes"
    for pattern, meaning in _MEANINGS:
        if found := re.search(pattern, problem):
            return meaning.format(*found.groups(), begin=begin)
    return problem
