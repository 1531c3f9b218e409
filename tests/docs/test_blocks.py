"""How pages are read: a harness that sees no command, or takes any output for what is shown, tests nothing."""

from pathlib import Path

import pytest

from tests.docs import blocks, runner

PAGE = """
# A page

<!-- run with: 1 for 1000; -b for -a -->

```console
$ echo 1000 -a \\
    x        # in two lines
1000 -a …
$ true
```

Between.

<!-- not run: needs docker -->
```console
$ docker push
```

<!-- yaml: a map -->
Text takes the comment away from the block.

```yaml
a: 1
```
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(blocks, "ROOT", tmp_path)
    path = tmp_path / "page.md"
    path.write_text(PAGE, encoding="utf-8")
    return path


def test_blocks_are_found_with_what_their_comments_say(page: Path) -> None:
    first, second, third = blocks.of(page)
    assert [one.place for one in (first, second, third)] == [
        "page.md:6",
        "page.md:16",
        "page.md:23",
    ]
    assert first.steps == (
        blocks.Step("echo 1000 -a \\\n    x        # in two lines", ("1000 -a …",)),
        blocks.Step("true", ()),
    )
    assert first.steps_to_run[0].command == "echo 1 -b \\\n    x        # in two lines"
    assert (second.notes, second.steps_to_run) == ({"not run": "needs docker"}, ())
    assert (third.language, third.text, third.notes) == ("yaml", "a: 1", {})


def test_a_change_that_changes_nothing_is_refused(page: Path) -> None:
    page.write_text("<!-- run with: 1 for 2 -->\n```console\n$ echo 3\n```\n", encoding="utf-8")
    (block,) = blocks.of(page)
    with pytest.raises(ValueError, match="no command has '2'"):
        _ = block.steps_to_run


def test_output_without_a_command_is_refused(page: Path) -> None:
    page.write_text("```console\necho 3\n```\n", encoding="utf-8")
    (block,) = blocks.of(page)
    with pytest.raises(ValueError, match="stands before the first command"):
        _ = block.steps


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (["a", "b"], "a\nb\n", True),
        (["a  "], "a", True),
        (["a"], "a\nb\n", False),
        (["a", "…"], "a\nb\nc\n", True),
        (["a", "…"], "a\n", True),
        (["…", "c"], "a\nb\nc\n", True),
        (["…", "c"], "a\nb\n", False),
        (["took … s"], "took 1.2 s\n", True),
        (["took … s"], "took\n1 s\n", False),
        (["a.c"], "abc\n", False),
    ],
)
def test_what_is_shown_is_compared(shown: list[str], printed: str, same: bool) -> None:
    assert blocks.agrees(tuple(shown), printed) is same


def test_a_command_that_fails_or_prints_something_else_is_told(page: Path, tmp_path: Path) -> None:
    def told(text: str) -> str:
        page.write_text(f"```console\n{text}\n```\n", encoding="utf-8")
        (block,) = blocks.of(page)
        return runner.complaint(block, tmp_path, {"PATH": "/usr/bin:/bin"})

    assert told("$ echo a\na\n$ echo b") == ""
    assert told("$ true\n$ false | cat") == "page.md:1: $ false | cat\n\nended with 1"
    assert told("$ echo a\nb") == "page.md:1: $ echo a\na\n\nis not what the page shows"
