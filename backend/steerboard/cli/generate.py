"""`steerboard generate`: answers of a model to prompts given here, at the scores asked for."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from steerboard.cli.client import ApiError, Client
from steerboard.cli.output.console import EXIT_FAILED, EXIT_INVALID, JsonOption, condition_label, console, print_json
from steerboard.cli.output.watch import wait_for

commands = typer.Typer()


@commands.command()
def generate(
    model: Annotated[str, typer.Argument(help="Name or id, for example demo-1.dt.")],
    prompt: Annotated[list[str], typer.Option(help="The user's message; may be repeated. `-` reads standard input.")],
    score: Annotated[
        list[str] | None,
        typer.Option(
            help="Requested score, of policies that take one, or several attributes such as "
            "helpfulness:4,verbosity:2; may be repeated."
        ),
    ] = None,
    temperature: Annotated[float, typer.Option(min=0.0, help="0 is greedy.")] = 0.0,
    top_p: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of the likeliest tokens to draw from.")] = 1.0,
    n: Annotated[int, typer.Option("--n", "-n", min=1, max=256, help="Answers for each prompt and score.")] = 1,
    max_new_tokens: Annotated[
        int | None, typer.Option(min=1, help="[default: 256, or half of a smaller model's window]")
    ] = None,
    stop: Annotated[list[str] | None, typer.Option(help="Text that ends an answer; may be repeated.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed draws the same answers.")] = 0,
    json: JsonOption = False,
) -> None:
    """Let a model answer, once for each prompt, score and n."""
    from steerboard_contracts.run_kinds import kind_that

    client = Client()
    decoding = {
        "temperature": temperature,
        "top_p": top_p,
        "n": n,
        "max_new_tokens": max_new_tokens,
        "stop": stop or [],
    }
    config = {
        "run": kind_that(lambda kind: kind.samples),
        "prompts": [sys.stdin.read() if one == "-" else one for one in prompt],
        "scores": score or [],
        "decoding": decoding,
        "seed": seed,
    }
    try:
        run = client.post("runs", {"config": config, "inputs": {"model": model}})
    except ApiError as error:
        if error.status == 422:
            print(f"error: {error} [{error.code}]", file=sys.stderr)
            raise typer.Exit(EXIT_INVALID) from None
        raise
    wait_for(client, run)
    finished = client.get(f"runs/{run['id']}")
    if finished["state"] != "succeeded":
        hint = (finished["error"] or {}).get("hint")
        print(f"error: {finished['reason']} [{finished['reason_code']}]", file=sys.stderr)
        if hint:
            print(f"  {hint}", file=sys.stderr)
        raise typer.Exit(EXIT_FAILED)
    answers = [a for out in finished["outputs"] if out["type"] == "answers" for a in out["document"]["answers"]]
    if json:
        print_json(answers)
    else:
        _print(console(), answers, several=len(prompt) > 1, n=n)


def _print(out: Console, answers: list[dict[str, Any]], *, several: bool, n: int) -> None:
    prompt = None
    for answer in answers:
        if several and answer["prompt"] != prompt:
            prompt = answer["prompt"]
            out.print(Text(f"\n{prompt}", style="italic"))
        labels = [condition_label(answer["score"])] if answer["score"] not in (None, "") else []
        labels += [f"#{answer['n'] + 1}"] if n > 1 else []
        labels += [] if answer["finished"] else ["cut at the token limit"]
        if labels:
            out.print(Text(", ".join(labels), style="bold"))
        out.print(Text(answer["text"].strip() or "(nothing)"))
        out.print()
