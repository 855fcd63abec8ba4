"""`make lint` fails on the words in scripts/prose_check.py, with the place of each and what to write instead."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECK = ROOT / "scripts" / "prose_check.py"


def check(file: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(CHECK), str(file)], capture_output=True, text=True)


def test_lint_runs_the_check() -> None:
    recipes = dict(re.findall(r"^([a-z-]+):.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert "python scripts/prose_check.py\n" in recipes["lint-python"]
    for target in ("lint", "test", "test-all"):
        assert "lint-python lint-web" in recipes[target]


@pytest.mark.parametrize(
    ("name", "text", "line", "words"),
    [
        ("a.md", "# Runs\n\nThe report says which method won.\n", 3, "says"),
        ("a.md", "Whoever holds the lease may write.\n", 1, "Whoever"),
        ("a.md", "Weights lie in the store.\n", 1, "lie"),
        ("a.md", "The database has not the schema of this version.\n", 1, "has not the"),
        ("a.py", 'x = 1\nraise ValueError("no value, for it is missing")\n', 2, ", for it"),
        ("a.py", 'x = 1\nraise ValueError(f"{x} weights lie in the store")\n', 2, "lie"),
        ("a.py", '"""One line.\n\nKept beside the sample.\n"""\n', 3, "beside"),
        ("a.py", "x = 1  # what broke off is done again\n", 1, "broke off"),
        ("a.tsx", "export const A = () => <p>What waits in each pool</p>;\n", 1, "What waits"),
        ("a.py", "x = 1  # a webhook is told of it\n", 1, "told"),
        ("a.md", "Nobody has judged yet.\n", 1, "Nobody"),
        ("a.md", "The run goes on.\n", 1, "goes on"),
        ("a.py", "x = 1  # a value that is no number\n", 1, "that is no "),
        ("a.tsx", "/** What the server says. */\n", 1, "says"),
    ],
)
def test_a_planted_word_is_found(tmp_path: Path, name: str, text: str, line: int, words: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    done = check(file)
    assert done.returncode == 1
    assert done.stdout.startswith(f'{file}:{line}: "{words}": '), done.stdout


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "The user says hello, and `says` is a field. UNK stands for unknown words.\n"),
        ("a.md", "Two words are told apart, unless told otherwise.\n"),
        ("a.md", "He said so. <!-- prose: ok -->\n"),
        ("a.py", "beside = says = 1\nprint(f'{beside} rows')\n"),
        ("a.py", 'NAME = "whoever"  # prose: ok\n'),
        ("a.tsx", "<ActionBar says={note} beside={<Badge />} />\nfunction tells(says: string) {\n"),
    ],
)
def test_names_and_marked_lines_are_left_alone(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    done = check(file)
    assert (done.stdout, done.returncode) == ("", 0)
