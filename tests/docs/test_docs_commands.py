"""Every command line in the docs is one that this version has: its commands, options and make targets exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest
import typer
from page_blocks import ROOT, Block, shell_blocks

from steerboard.cli.main import app

# Typer has a copy of click.
UsageError = typer.BadParameter.__mro__[1]
_COMMAND = re.compile(r"(?:^|[|&;(]|\$\()\s*(?:\w+=\S* )*(steerboard|make) ([^|&;)\n]*)", re.MULTILINE)
# What a reader is to fill in, and what shells make of a line before a program sees it.
_PLACEHOLDER = re.compile(r"\[[^\]]*\]|\.\.\.|<[^>]*>")


def lines(block: Block) -> Iterator[tuple[str, str]]:
    for match in _COMMAND.finditer(re.sub(r"\s#.*", "", block.text.replace("\\\n", " "))):
        yield match.group(1), match.group(2).strip()


def commands() -> list[tuple[str, str, str]]:
    triples = [(block.page, program, rest) for block in shell_blocks() for program, rest in lines(block)]
    return sorted(set(triples))


def parsed(words: list[str]) -> None:
    """Raises `UsageError` for an unknown command or option."""
    command = typer.main.get_command(app)
    while hasattr(command, "commands") and words:
        if words[0] not in command.commands:
            raise typer.BadParameter(f"no command {words[0]}")
        command, words = command.commands[words[0]], words[1:]
    # A reader fills in what is missing; options must be known.
    command.make_parser(command.context_class(command)).parse_args(list(words))


@pytest.mark.parametrize(("page", "program", "rest"), commands())
def test_a_command_of_the_docs_exists_with_its_options(page: str, program: str, rest: str) -> None:
    words = shlex.split(_PLACEHOLDER.sub("", rest), comments=True)
    if program == "make":
        targets = re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert [word for word in words if "=" not in word and word not in targets] == []
    else:
        parsed(words)


def test_the_docs_have_commands_and_a_false_one_is_found() -> None:
    assert len(commands()) >= 50
    for false in (["runs", "begin"], ["runs", "start", "sft", "--sett", "x=1"], ["evaluate"]):
        with pytest.raises(UsageError):
            parsed(false)
