"""`make lint` fails on the words and fragments that scripts/prose_check.py names, with the place of each and what to
write instead."""

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
        ("a.py", 'x = Typer(help="Bring a model in from a folder.")\n', 1, "Bring a model in"),
        ("a.md", "A run brings it in first.\n", 1, "brings it in"),
        ("a.md", "Pairs of which both sides are equal are dropped.\n", 1, "of which both"),
        ("a.py", 'x = 1\nraise ValueError("it is of kind a; needed is b or c")\n', 2, "needed is b or"),
        ("a.py", "x = 1  # invalid, for the gate decides nothing\n", 1, ", for the gate decides"),
    ],
)
def test_a_planted_word_is_found(tmp_path: Path, name: str, text: str, line: int, words: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    done = check(file)
    assert done.returncode == 1
    assert done.stdout.startswith(f'{file}:{line}: "{words}": '), done.stdout


@pytest.mark.parametrize(
    ("name", "text", "line", "words"),
    [
        ("a.py", '"""Of one run."""\n', 1, "Of"),
        ("a.py", 'class A:\n    """Those of one run."""\n', 2, "Those"),
        ("a.py", 'def f():\n    """\n    Likewise, of a run."""\n', 3, "Likewise"),
        ("a.py", 'async def f():\n    r"""That of a run."""\n', 2, "That of"),
        ("a.py", 'x = 1\n"""Of a folder."""\n', 2, "Of"),
        ("a.py", '"""Where files are kept."""\n', 1, "Where"),
        ("a.py", 'class A:\n    """\n    At most ten rows."""\n', 3, "At most"),
        ("a.py", 'def f():\n    """By id or name."""\n', 2, "By id"),
        ("a.py", 'async def f():\n    """None for a run."""\n', 2, "None for"),
        ("a.py", '"""From a folder to a model."""\n', 1, "From"),
        ("a.py", 'def f():\n    """As the caller sees it."""\n', 2, "As"),
        ("a.py", 'def f():\n    """Before the first step."""\n', 2, "Before"),
        ("a.py", 'def f():\n    """Until it has ended."""\n', 2, "Until"),
        ("a.py", 'def test_f():\n    """And with dropout, a reference gives the same."""\n', 2, "And"),
        ("a.py", "x = 1\n# Of a folder.\ny = 2\n", 2, "Of"),
        ("a.py", "class A:\n    x = 1\n\n    #: Those of a run.\n    y = 2\n", 4, "Those"),
        ("a.py", 'x = Field(\n    description="Of the noise."\n)\n', 2, "Of"),
        ("a.py", 'x = Option(help=(\n    "Those of a run."\n))\n', 2, "Those"),
        ("a.py", 'x = Kind(about="Of several answers, keep the best.")\n', 1, "Of"),
        ("a.py", '@app.command()\ndef show():\n    """A run and its stages."""\n', 3, "A"),
        ("a.tsx", '<Input\n  description="Of the noise"\n/>\n', 2, "Of"),
        ("a.ts", 'const a = { label: "Those of a run" };\n', 1, "Those"),
        ("a.ts", "const a = 1;\n  // Of a folder.\n", 2, "Of"),
        ("a.tsx", "/** Those of a run. */\n", 1, "Those"),
        ("a.tsx", "<p>\n  {/* Likewise, of a run. */}\n</p>\n", 2, "Likewise"),
        ("a.css", "/*\n * Of a table.\n */\n", 2, "Of"),
        ("a.md", "# Runs\n\n- Likewise for runs.\n", 3, "Likewise"),
        ("a.md", "Ten runs ended. Of those two\nfailed.\n", 1, "Of those"),
        ("a.md", "Two figures:\nThat of the judge.\n", 2, "That of"),
    ],
)
def test_a_planted_fragment_is_found(tmp_path: Path, name: str, text: str, line: int, words: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    done = check(file)
    assert done.returncode == 1
    assert done.stdout.startswith(f'{file}:{line}: "{words}": '), done.stdout
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", '"""The weights of one run. Of several, the newest counts."""\n'),
        ("a.py", '"""That makes a sentence. Offers one."""\n'),
        ("a.py", '"""The identity. Returns None for a run."""\nx = 1\n# Where one is kept, it counts.\n'),
        ("a.py", '"""Where files are kept."""  # prose: ok\n'),
        ("a.py", '"""Forks a process, as asked."""\nx = 1\n# With this, the next line is safe.\n'),
        ("a.py", "x = 1  # Of a folder.\n# The longest line of a block that ends before its\n# Of is no fragment.\n"),
        ("a.py", 'print("Of a folder.")\nNAME = ("Those of a run",)\n'),
        ("a.py", 'x = Field(description="Seed of the noise.", name="Of the noise")\n'),
        ("a.py", '@app.command()\ndef show():\n    """Analyse a run."""\n'),
        ("a.py", '@cache\ndef runs():\n    """All runs, for the page is a list for everyone."""  # prose: ok\n'),
        ("a.md", "Bring your own model. Wait for the run that is first, for each name in the list.\n"),
        ("a.py", '"""Of one run."""  # prose: ok\n# Of a folder. prose: ok\n'),
        ("a.ts", "// A line that ends before its\n// Of is no fragment.\nconst a = 1; // Of a folder.\n"),
        ("a.tsx", "/** Offers a menu. */\n/* That makes it open. */\n"),
        ("a.md", "Of course `Likewise` is a word, and likewise of those.\n"),
    ],
)
def test_sentences_and_noun_phrases_are_left_alone(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    done = check(file)
    assert (done.stdout, done.returncode) == ("", 0)


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
