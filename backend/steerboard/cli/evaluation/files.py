"""`steerboard evaluations import-... | prompt-sets | export`: files of other projects, in and out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from steerboard.cli.client import Client, path_of
from steerboard.cli.output.console import JsonOption, console, print_json, tell
from steerboard.cli.output.listing import Column, print_table
from steerboard_contracts.errors import BadInput

app = typer.Typer()

Name = Annotated[str, typer.Argument(help="Name or id of the evaluation.")]
BadRows = Annotated[str, typer.Option(help="refuse: import nothing; skip: leave out the bad rows.")]
Family = Annotated[str | None, typer.Option(help="Model family, for the check of self-preference.")]
Out = dict[str, Any]

_COLUMNS = (
    Column("prompt set"),
    Column("prompts", right=True, drop=3),
    Column("turns", right=True, drop=4),
    Column("id", drop=2, id=True),
    Column("what", drop=1, words=True),
)
_PATIENT = httpx.Timeout(None, connect=5.0)


@app.command("prompt-sets")
def prompt_sets(json: JsonOption = False) -> None:
    """List prompt sets, and the benchmarks that `import-prompts --known` knows."""
    client = Client()
    sets, known = list(client.pages("prompt-sets")), client.get("prompt-sets/known")
    if json:
        print_json({"sets": sets, "known": known})
        return
    for benchmark in known:
        benchmark |= {"id": None, "format": f"--known; {benchmark['title']}; {benchmark['licence']}"}
    rows = [tuple(row[key] for key in ("name", "prompts", "turns", "id", "format")) for row in (*sets, *known)]
    print_table(console(), _COLUMNS, rows)


@app.command("import-prompts")
def import_prompts(
    file: Annotated[
        Path | None, typer.Argument(help="FastChat, AlpacaEval or Arena-Hard questions, or JSON lines with `prompt`.")
    ] = None,
    known: Annotated[
        str | None,
        typer.Option(help="A benchmark listed by `prompt-sets`; the server fetches it, or checks the file against it."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the prompt set; the file's by default.")] = None,
    format: Annotated[str, typer.Option(help="auto, fastchat, alpaca_eval, arena_hard or jsonl.")] = "auto",
    json: JsonOption = False,
) -> None:
    """Import a prompt set from a file or a known benchmark."""
    if file is None and known is None:
        raise typer.BadParameter("give a file, or --known")
    form = {"name": name, "known": known, "format": format}
    prompt_set = _upload("prompt-sets", file, form)
    if json:
        print_json(prompt_set)
        return
    print(
        f"{prompt_set['name']}: {prompt_set['prompts']} prompts of {prompt_set['turns']} turns ({prompt_set['format']})"
    )


@app.command("import-answers")
def import_answers(
    evaluation: Name,
    file: Annotated[Path, typer.Argument(help="FastChat, AlpacaEval or Arena-Hard answers, optionally gzipped.")],
    name: Annotated[str | None, typer.Option(help="Name of the entrant; the file's by default.")] = None,
    format: Annotated[str, typer.Option(help="auto, fastchat, alpaca_eval or arena_hard.")] = "auto",
    family: Family = None,
    bad_rows: BadRows = "refuse",
    json: JsonOption = False,
) -> None:
    """Import answers of external models as entrants."""
    form = {"format": format, "name": name, "family": family, "bad_rows": bad_rows}
    imported = _upload(path_of("evaluations", evaluation, "answers"), file, form)
    if json:
        print_json(imported)
        return
    for entrant in imported["entrants"]:
        print(f"{entrant['name']}: {entrant['responses']} answers, {entrant['missing']} missing")
    for words in _notes(imported, "match none of the prompts", "answers are duplicates; the newest ones count"):
        print(f"  {words}")
    if imported["short"]:
        print(f"  {imported['short']} answers have fewer turns than their prompt")


@app.command("import-judgments")
def import_judgments(
    evaluation: Name,
    file: Annotated[Path, typer.Argument(help="Judgments of FastChat, AlpacaEval, Arena-Hard or Vicuna.")],
    name: Annotated[str | None, typer.Option(help="Name of the judge.")] = None,
    format: Annotated[
        str,
        typer.Option(
            help="auto, fastchat_single, fastchat_pair, alpaca_eval, arena_hard, arena_bench or vicuna_review."
        ),
    ] = "auto",
    model: Annotated[
        str | None, typer.Option(help="Model of the judge; selects its rows in a file of several judges.")
    ] = None,
    family: Family = None,
    baseline: Annotated[
        str | None, typer.Option(help="The baseline entrant, which Arena-Hard files do not name.")
    ] = None,
    add_entrants: Annotated[
        bool, typer.Option("--add-entrants", help="Add new models of the file as entrants.")
    ] = False,
    bad_rows: BadRows = "refuse",
    json: JsonOption = False,
) -> None:
    """Import external judgments as a judge that counts in every statistic."""
    form = {"format": format, "name": name, "model": model, "family": family, "baseline": baseline}
    form |= {"bad_rows": bad_rows, "add_entrants": "true" if add_entrants else None}
    imported = _upload(path_of("evaluations", evaluation, "judgments"), file, form)
    if json:
        print_json(imported)
        return
    counts = ", ".join(f"{imported[key]} {key}" for key in ("ok", "unparsed", "refused", "errors"))
    print(f"{imported['judge']['name']}: {imported['rows']} rows, {imported['verdicts']} verdicts: {counts}")
    if imported["entrants_added"]:
        print(f"  new entrants: {', '.join(imported['entrants_added'])}")
    for words in _notes(imported, "do not belong here", "verdicts are superseded by newer ones"):
        print(f"  {words}")


@app.command()
def export(
    evaluation: Name,
    target: Annotated[Path, typer.Argument(help="The file to write.")],
    entrant: Annotated[str | None, typer.Option(help="Export the answers of this entrant.")] = None,
    judge: Annotated[str | None, typer.Option(help="Export the judgments of this judge.")] = None,
    format: Annotated[
        str | None,
        typer.Option(
            help="For answers: fastchat (the default), alpaca_eval or arena_hard; for judgments: the judge's style."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Export an entrant's answers or a judge's judgments in another project's file format."""
    if (entrant is None) == (judge is None):
        raise typer.BadParameter("give either --entrant or --judge")
    part = ("answers",) if judge is None else ("judges", judge, "judgments")
    given = {key: value for key, value in (("format", format), ("entrant", entrant)) if value is not None}
    size = Client().download(path_of("evaluations", evaluation, *part), target, **given)
    tell(f"Wrote {target} ({size:,} bytes)", {"file": str(target), "bytes": size}, json=json)


def _notes(imported: Out, elsewhere: str, twice: str) -> Iterator[str]:
    """What was left out of an import, with the first of each kind."""
    if imported["unmatched_rows"]:
        first = imported["unmatched"][0]
        yield f"{imported['unmatched_rows']} rows {elsewhere}; the first, line {first['line']}, {first['reason']}"
    if imported["skipped_rows"]:
        first = imported["skipped"][0]
        yield f"{imported['skipped_rows']} rows cannot be read; the first, line {first['line']}, {first['reason']}"
    if imported["duplicates"]:
        yield f"{imported['duplicates']} {twice}"


def _upload(path: str, file: Path | None, form: Out) -> Out:
    """`file` None: the form alone. Raises `BadInput` (`no_such_file`)."""
    fields = {key: value for key, value in form.items() if value is not None}
    client = Client()
    if file is None:
        return dict(client.post(path, fields, timeout=_PATIENT))
    try:
        content = file.open("rb")
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror}", code="no_such_file") from None
    with content:
        return dict(client.post(path, files={"file": (file.name, content)}, data=fields, timeout=_PATIENT))
