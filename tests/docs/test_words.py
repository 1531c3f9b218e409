"""What users read says request, reported, allocated, expensive and unhealthy, and no private words for these."""

import ast
import re
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


def private(text: str) -> list[str]:
    return [found[0] for found in PRIVATE.finditer(text)]


def test_no_text_of_the_product_has_a_private_word() -> None:
    modules = [*(blocks.ROOT / "scheduler").rglob("*.py")]
    found = [
        f"{path}:{line}: {text}" for path in modules for line, text in texts(path) if private(text)
    ]
    assert len(modules) > 300
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
