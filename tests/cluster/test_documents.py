"""What Evenkeel reads in a word of YAML is what kubectl reads there."""

import json
import subprocess

from scheduler.documents import reading
from scheduler.documents.bounds import Unreadable
from tests.controlplane import build
from tests.unit import yaml_words

# Left out on purpose, see ``documents/scalars``.
LETTERS = {"v: y", "v: Y", "v: n", "v: N", "y: v", "n: v", "v: [1, [2, y], {n: y}]"}


def test_words_keys_and_merges_are_read_as_kubectl_reads_them() -> None:
    differ = []
    for text in yaml_words.texts():
        given = yaml_words.thing(text)
        command = [str(build.ensure("kubectl")["kubectl"]), "annotate", "--local", "-f", "-", "a=b", "-o", "json"]  # fmt: skip
        printed = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
        theirs = json.loads(printed.stdout)["spec"] if printed.returncode == 0 else "refused"
        try:
            ours = reading.read_first(given)["spec"]
        except Unreadable:
            ours = "refused"
        if ours != theirs and text not in LETTERS:
            differ.append((text, theirs, ours))
    assert differ == []
