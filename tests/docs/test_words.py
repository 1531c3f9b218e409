"""What users and contributors read says request, reported, allocated, expensive and unhealthy, and no private words."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import blocks

PRIVATE = re.compile(
    r"\b(asks?|asked|told|tells?|given away|gives? away|dear(er|est)?|ill|whoever|taken away)\b",
    re.IGNORECASE,
)
_PAGES = [
    *blocks.ROOT.glob("*.md"),
    *(blocks.ROOT / "docs").rglob("*.md"),
    *(blocks.ROOT / "manifests").rglob("*.md"),
]
_OBJECTS = [
    path
    for folder in ("manifests", "crds", "docs/examples")
    for suffix in ("yaml", "json", "txt", "tpl")
    for path in (blocks.ROOT / folder).rglob(f"*.{suffix}")
]
_CODE = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)", re.DOTALL)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Texts of a module that have several words, with their lines, but no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {
        id(one.value)
        for one in ast.walk(tree)
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
    }
    for one in ast.walk(tree):
        if (
            isinstance(one, ast.Constant)
            and isinstance(one.value, str)
            and " " in one.value
            and id(one) not in docstrings
        ):
            yield one.lineno, one.value


# Packages that contributors read first: their docstrings and comments, too, have no private words.
_CONTRIBUTED = ("plugins", "devices", "kube", "cli", "simulate", "replay", "documents")
# Words in which a reader looks for the person or the court.
_RIDDLES = re.compile(
    r"\b(whom|nobody|judge[sd]?|judging|otherwise than)\b|\bstands? in (the|its|their) place\b",
    re.IGNORECASE,
)
# Names of Python in docstrings: between backticks, and before the colon in a list of attributes.
_NAMES = re.compile(r"``[^`]*``|^ *[\w, ]+:(?= |$)", re.MULTILINE)


def explanations(path: Path) -> Iterator[tuple[int, str]]:
    """Docstrings and comments of a module, with their lines, without names of Python."""
    source = path.read_text(encoding="utf-8")
    for one in ast.walk(ast.parse(source)):
        if (
            isinstance(one, ast.Expr)
            and isinstance(one.value, ast.Constant)
            and isinstance(one.value.value, str)
        ):
            yield one.lineno, _NAMES.sub("", one.value.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], _NAMES.sub("", token.string)


def private(text: str) -> list[str]:
    return [found[0] for found in PRIVATE.finditer(text)]


def test_no_text_of_the_product_has_a_private_word() -> None:
    modules = [*(blocks.ROOT / "scheduler").rglob("*.py")]
    found = [
        f"{path}:{line}: {text}" for path in modules for line, text in texts(path) if private(text)
    ]
    assert len(modules) > 300
    assert not found


@pytest.mark.parametrize("package", _CONTRIBUTED)
def test_no_docstring_and_no_comment_that_contributors_read_has_a_private_word(
    package: str,
) -> None:
    modules = [*(blocks.ROOT / "scheduler" / package).rglob("*.py")]
    found = [
        f"{path}:{line}: {text}"
        for path in sorted(modules)
        for line, text in explanations(path)
        if private(text) or _RIDDLES.search(text)
    ]
    assert len(modules) > 5
    assert not found


@pytest.mark.parametrize("path", _PAGES, ids=lambda path: str(path.relative_to(blocks.ROOT)))
def test_no_page_has_a_private_word(path: Path) -> None:
    assert not private(_CODE.sub("", path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", _OBJECTS, ids=lambda path: str(path.relative_to(blocks.ROOT)))
def test_no_manifest_has_a_private_word(path: Path) -> None:
    assert not private(path.read_text(encoding="utf-8"))


def test_a_private_word_is_noticed(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""It is told."""\nLOG = f"{1} cards are given away"\nKEY = "asked"\n')
    assert [private(text) for _, text in texts(module)] == [["given away"]]
    module.write_text(
        '"""Cards are told, see ``asked``.\n\nAttributes:\n    asked: the request.\n    x: whoever\n"""\n'
        "told = 1  # what a pod asks\n"
    )
    found = [private(text) for _, text in explanations(module)]
    assert found == [["told", "whoever"], ["asks"]]
