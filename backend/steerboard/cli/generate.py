"""`steerboard generate`: answers of a model to prompts given here, at the scores asked for, from the worker that serves
the playground: training holds up none of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import orjson
import typer
from rich.console import Console
from rich.text import Text

from steerboard.cli.client import ApiError, Client
from steerboard.cli.output.comparison import failures, finished
from steerboard.cli.output.console import EXIT_FAILED, EXIT_INVALID, JsonOption, condition_label, console, print_json
from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.errors import BadInput
from steerboard_contracts.models import ModelInfo

commands = typer.Typer()
Turns = list[dict[str, str]]

# The most columns of a comparison.
_COLUMNS = 8


@commands.command()
def generate(
    model: Annotated[str, typer.Argument(help="Name or id of a model, for example demo-1.dt, or of an endpoint.")],
    prompt: Annotated[
        list[str] | None,
        typer.Option(help="A user message; may be repeated. `-` reads standard input."),
    ] = None,
    messages: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="A conversation: a JSON file with a list of {role, content} that ends with the user; may be "
            "repeated. `-` reads standard input.",
        ),
    ] = None,
    chat: Annotated[bool, typer.Option("--chat", help="Chat: each line of standard input is a message.")] = False,
    system: Annotated[str | None, typer.Option(help="A system prompt for all conversations.")] = None,
    score: Annotated[
        list[str] | None,
        typer.Option(
            help="Requested score, for policies that take one, or attributes such as "
            "helpfulness:4,verbosity:2; may be repeated."
        ),
    ] = None,
    temperature: Annotated[float, typer.Option(min=0.0, help="Sampling temperature; 0 is greedy.")] = 0.0,
    top_p: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Probability mass of the likeliest tokens to sample from.")
    ] = 1.0,
    top_k: Annotated[int, typer.Option(min=0, help="Sample from this many of the likeliest tokens; 0: all.")] = 0,
    guidance: Annotated[
        float, typer.Option(min=0.0, max=20.0, help="How strongly a requested score is followed; 1: no guidance.")
    ] = 1.0,
    n: Annotated[int, typer.Option("--n", "-n", min=1, max=256, help="Answers per prompt and score.")] = 1,
    max_new_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum length of an answer. [default: 256, or half of a smaller model's window]"),
    ] = None,
    stop: Annotated[list[str] | None, typer.Option(help="Text that ends an answer; may be repeated.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed; the same seed gives the same answers.")] = 0,
    json: JsonOption = False,
) -> None:
    """Generate n answers for each prompt and score. They come from the interactive worker, so training does not delay
    them."""
    conversations = [*_prompts(prompt or []), *_conversations(messages or [])]
    if bool(conversations) == chat:
        raise typer.BadParameter("give one of --prompt, --messages and --chat", param_hint="--prompt")
    if chat and (n > 1 or len(score or []) > 1):
        raise typer.BadParameter("a conversation has one answer to each message: give one --score, and no -n")
    if system is not None:
        conversations = [_with_system(turns, system) for turns in conversations]
    decoding = {
        "temperature": temperature,
        "top_p": top_p,
        "top_k": top_k,
        "max_new_tokens": max_new_tokens,
        "guidance": guidance,
    }
    scores: list[str | None] = [*score] if score else [None]
    asker = Asker(Client(), model, scores, decoding | {"stop": stop or []}, seed)
    answers: list[dict[str, Any]] = []
    try:
        if chat:
            answers = _converse(asker, system, quiet=json)
        else:
            answers = [answer for turns in conversations for answer in asker.ask(turns, n)]
    except ApiError as error:
        if error.status == 422:
            print(f"error: {error} [{error.code}]", file=sys.stderr)
            raise typer.Exit(EXIT_INVALID) from None
        raise
    if json:
        print_json(answers)
    elif not chat:
        _print(console(), answers, asker.form, several=len(conversations) > 1, n=n)


class Asker:
    """Asks one model, at all scores."""

    def __init__(
        self, client: Client, model: str, scores: Sequence[str | None], decoding: dict[str, Any], seed: int
    ) -> None:
        self._client = client
        self._source = "model"
        self._model = model
        self._scores = scores
        self._decoding = decoding
        self._seed = seed

    def ask(self, turns: Turns, n: int = 1) -> list[dict[str, Any]]:
        """The answers by score, and of each score by number. Ends with status 1 where an answer failed."""
        rows = []
        for number in range(n):
            for first in range(0, len(self._scores), _COLUMNS):
                scores = self._scores[first : first + _COLUMNS]
                comparison = finished(self._client, self._started(turns, scores, self._seed + number))
                if failures(comparison):
                    raise typer.Exit(EXIT_FAILED)
                rows += [self._row(turns, number, column) for column in comparison["columns"]]
        order = {score: place for place, score in enumerate(dict.fromkeys(row["score"] for row in rows))}
        return sorted(rows, key=lambda row: order[row["score"]])

    @cached_property
    def form(self) -> ConditionFormat | None:
        """How the model's prompts have a score, once it was asked; None where an endpoint decides that."""
        if self._source == "endpoint":
            return None
        model = self._client.get(f"models/{quote(self._model)}")
        return ModelInfo.model_validate(model["info"]).condition

    def _started(self, turns: Turns, scores: Sequence[str | None], seed: int) -> dict[str, Any]:
        def body(source: str) -> dict[str, Any]:
            columns = [{source: self._model, "score": score, "decoding": self._decoding} for score in scores]
            return {"prompt": turns, "columns": columns, "seed": seed}

        try:
            made: dict[str, Any] = self._client.post("playground/comparisons", body(self._source))
        except ApiError as error:
            if error.code != "unknown_model" or self._source == "endpoint":
                raise
            try:
                made = self._client.post("playground/comparisons", body("endpoint"))
            except ApiError as other:
                raise (error if other.status == 404 else other) from None
            self._source = "endpoint"
        return made

    def _row(self, turns: Turns, number: int, column: dict[str, Any]) -> dict[str, Any]:
        shown = turns[0]["content"] if len(turns) == 1 else turns
        kept = {name: column[name] for name in ("score", "text", "tokens", "finished")}
        return {"prompt": shown, "n": number, **kept}


def _converse(asker: Asker, system: str | None, *, quiet: bool) -> list[dict[str, Any]]:
    """Each message is asked with the turns before it."""
    turns: Turns = [] if system is None else [{"role": "system", "content": system}]
    answers: list[dict[str, Any]] = []
    for line in _lines():
        turns = [*turns, {"role": "user", "content": line}]
        (answer,) = asker.ask(turns)
        answers.append(answer)
        turns = [*turns, {"role": "assistant", "content": answer["text"].strip() or "(nothing)"}]
        if not quiet:
            _print(console(), [answer], asker.form, several=False, n=1)
    return answers


def _lines() -> Iterator[str]:
    """Messages of a person or a pipe; empty lines are none."""
    while True:
        if sys.stdin.isatty():
            print("> ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.strip()


def _prompts(given: Sequence[str]) -> list[Turns]:
    return [[{"role": "user", "content": sys.stdin.read() if prompt == "-" else prompt}] for prompt in given]


def _conversations(files: Sequence[str]) -> list[Turns]:
    """Raises `BadInput` (`bad_conversation`) for what holds no list of messages; the server checks the rest."""
    conversations = []
    for file in files:
        try:
            text = sys.stdin.read() if file == "-" else Path(file).read_text()
            turns = orjson.loads(text)
        except (OSError, ValueError) as error:
            raise BadInput(f"{file} cannot be read as a conversation: {error}", code="bad_conversation") from None
        if not isinstance(turns, list) or not all(isinstance(turn, dict) and "role" in turn for turn in turns):
            raise BadInput(
                f"{file} is not a conversation",
                code="bad_conversation",
                hint='Write [{"role": "user", "content": "Hi"}], with turns of user and assistant in their order.',
            )
        conversations.append(turns)
    return conversations


def _with_system(turns: Turns, system: str) -> Turns:
    if turns and turns[0].get("role") == "system":
        raise BadInput(
            "the conversation begins with a system prompt of its own", code="bad_conversation", hint="Omit --system."
        )
    return [{"role": "system", "content": system}, *turns]


def _print(out: Console, answers: list[dict[str, Any]], form: ConditionFormat | None, *, several: bool, n: int) -> None:
    prompt = None
    for answer in answers:
        if several and answer["prompt"] != prompt:
            prompt = answer["prompt"]
            question = prompt if isinstance(prompt, str) else prompt[-1]["content"]
            out.print(Text(f"\n{question}", style="italic"))
        labels = [condition_label(answer["score"], form)] if answer["score"] not in (None, "") else []
        labels += [f"#{answer['n'] + 1}"] if n > 1 else []
        labels += [] if answer["finished"] else ["cut at the token limit"]
        if labels:
            out.print(Text(", ".join(labels), style="bold"))
        out.print(Text(answer["text"].strip() or "(nothing)"))
        out.print()
