"""`steerboard datasets`: import, list, show, export, delete."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import httpx
import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from steerboard.cli.client import ApiError, Client, path_of
from steerboard.cli.data import cleaning, conversions, versions
from steerboard.cli.output.console import JsonOption, console, note, print_json, tell
from steerboard.cli.output.held_out_changes import print_held_out_changes
from steerboard.cli.output.listing import Column, moment, plain, print_table
from steerboard.cli.output.numbers import short
from steerboard.cli.pushing import push_dataset
from steerboard.datasets.parsing.cleaning import RULES
from steerboard.datasets.schemas import UnusedColumn
from steerboard_contracts.errors import BadInput
from steerboard_contracts.wording import counted, listed
from steerboard_files.known import IN_WORDS, without_ending

app = typer.Typer(no_args_is_help=True, help="Import, inspect, clean, convert and export datasets.")
app.add_typer(cleaning.app)
app.add_typer(conversions.app)
app.add_typer(versions.app)

Name = Annotated[str, typer.Argument(help="Name, PIPELINE.STAGE, id or the end of an id.")]
Out = dict[str, Any]
Split = Literal["all", "train", "held_out"]

_COLUMNS = (
    Column("dataset"),
    Column("kind"),
    Column("rows", lambda count: f"{count:,}", right=True, drop=5),
    Column("held out", lambda count: f"{count:,}", right=True, drop=6),
    Column("created", moment, drop=3),
    Column("id", drop=2, id=True),
    Column("from", drop=4, words=True),
)
_SHOWN_BAD = 10
# Rules whose rows are valid: without cleaning they are imported.
_USABLE = {"duplicate": "duplicates", "identical_sides": "equal sides"}
# An import of a large file takes as long as it takes; only silence on the line itself is an error.
_PATIENT = httpx.Timeout(None, connect=5.0)


class _Watched:
    """A file that reports how much of it has been read, for the upload's progress bar."""

    def __init__(self, file: BinaryIO, progress: Progress, task: Any) -> None:
        self._file = file
        self._progress = progress
        self._task = task

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._progress.update(self._task, completed=self._file.tell())
        if not data:
            self._progress.update(self._task, description="Checking and storing rows")
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def fileno(self) -> int:
        return self._file.fileno()


@app.command("import")
def import_dataset(
    file: Annotated[str, typer.Argument(help=f"A file ({IN_WORDS}), or hub:ORG/NAME[@REV][:SPLIT].")],
    name: Annotated[str | None, typer.Option(help="Name of the dataset; the file's by default.")] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="instructions, preferences, prompts, unpaired, labelled or stepwise; recognised by default."),
    ] = None,
    map: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            help="FIELD=COLUMN[,FIELD=COLUMN...], e.g. reward=gpt4_score; attributes.NAME=COLUMN for one of several.",
        ),
    ] = None,
    bad_rows: Annotated[str, typer.Option(help="refuse: import nothing; skip: leave out the bad rows.")] = "refuse",
    min_margin: Annotated[
        float | None, typer.Option(help="Drop preferences with a smaller margin between the two sides.")
    ] = None,
    clean: Annotated[
        bool, typer.Option(help="Drop duplicates, identical sides, empty and diverging dialogues.")
    ] = True,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask about unused columns.")] = False,
    json: JsonOption = False,
) -> None:
    """Import a dataset. Every row is checked as training checks it; either all of the file is stored or nothing.

    On a terminal, it asks before importing a file with unused columns; otherwise it lists them afterwards.
    """
    progress = console(stderr=True)
    fields: dict[str, str] = {
        "name": name or _default_name(file),
        "bad_rows": bad_rows,
        "clean": str(clean).lower(),
        "mapping": ",".join(map or []),
    }
    if kind:
        fields["kind"] = kind
    if min_margin is not None:
        fields["min_margin"] = str(min_margin)
    if file.startswith("hub:"):
        fields["hub"] = file.removeprefix("hub:")
    asking = sys.stdin.isatty() and not yes
    try:
        report = _send(file, {**fields, "unused": "refuse"} if asking else fields, progress)
    except ApiError as error:
        if error.code != "unused_columns":
            raise
        progress.print(Text.assemble(("Not imported yet: ", "yellow"), plain(error.detail)))
        for column in error.errors:
            progress.print(plain(f"  {column.location}: {column.message}"))
        typer.confirm("Import it anyway?", abort=True, err=True)
        report = _send(file, fields, progress)
    if json:
        print_json(report)
    else:
        print_report(report, console())


def _default_name(file: str) -> str:
    stem = without_ending(file.removeprefix("hub:").rsplit("/", 1)[-1])
    return "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in stem)


def _send(file: str, fields: dict[str, str], progress: Console) -> Out:
    if "hub" not in fields:
        return _upload(Path(file), fields, progress)
    with progress.status(f"Fetching and importing {file}"):
        # A form like the others, so the field that is sent decides between file and hub.
        return _post(fields, [(key, (None, value)) for key, value in fields.items()])


def _upload(path: Path, fields: dict[str, str], out: Console) -> Out:
    if not path.is_file():
        raise BadInput(
            f"there is no file {path}", code="no_such_file", hint="Check the path; a hub name is hub:ORG/NAME."
        )
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=out) as progress, path.open("rb") as file:
        task = progress.add_task(f"Uploading {path.name}", total=path.stat().st_size)
        return _post(fields, {"file": (path.name, _Watched(file, progress, task), "application/octet-stream")})


def _post(fields: dict[str, str], files: Any) -> Out:
    data = fields if isinstance(files, dict) else None
    report: Out = Client().post("datasets/import", data=data, files=files, timeout=_PATIENT)
    return report


def print_report(report: Out, out: Console) -> None:
    """What happened to every row that was read."""
    dataset = report["dataset"]
    origin = dataset["origin"]
    forms = {
        "transcripts": ", Human/Assistant transcripts split into turns",
        "dialogues": ", dialogues split into turns",
    }
    words = plain(f"({dataset['held_out_rows']:,} held out) from {origin['file']}")
    what = f": {report['rows']:,} {dataset['kind']} {words}"
    out.print(Text.assemble(("Imported ", "green"), (dataset["name"], "bold"), what))
    layouts = "".join(f", layout: {name}" for name in report["layouts"])
    columns = ", ".join(f"{field} from {column!r}" for field, column in report["columns"].items())
    out.print(plain(f"  read as {report['format']}{layouts}{forms.get(report['form'], '')}; {columns}"))
    if report["unused"]:
        out.print("  not used:", style="yellow")
        for column in report["unused"]:
            out.print(plain(f"    {column['name']}: {UnusedColumn.model_validate(column).words}"))
    out.print(f"  {counted(report['read'], 'row')} read")
    if not dataset["held_out_rows"]:
        out.print("  no rows are held out for evaluation: import more prompts", style="yellow")
    for rule, count in report["cleaned"].items():
        out.print(f"  {count:,} dropped: {rule.replace('_', ' ')} ({RULES[rule]})")
    if usable := [words for rule, words in _USABLE.items() if rule in report["cleaned"]]:
        shows = ", for `steerboard datasets clean`, which shows examples" if dataset["kind"] == "preferences" else ""
        out.print(f"  --no-clean keeps {listed(usable)}{shows}", style="dim")
    if report["bad_rows"]:
        out.print(f"  {report['bad_rows']:,} bad rows skipped", style="yellow")
        for reason, count in list(report["bad_counts"].items())[:_SHOWN_BAD]:
            out.print(plain(f"    {count:,} x {reason}"))
        lines = ", ".join(str(bad["line"]) for bad in report["bad"][:_SHOWN_BAD])
        more = ", ..." if report["bad_rows"] > _SHOWN_BAD else ""
        out.print(f"    lines {lines}{more}")
    _print_figures(dataset, out)


def _print_figures(dataset: Out, out: Console) -> None:
    for label, key in (("prompts", "prompt_characters"), ("responses", "response_characters")):
        if spread := dataset[key]:
            out.print(
                f"  {label}: {spread['mean']:,.0f} characters on average, {spread['p50']:,.0f} median, "
                f"{spread['p95']:,.0f} at 95%, {spread['max']:,.0f} at most"
            )
    if rewards := dataset["rewards"]:
        out.print(
            f"  rewards of {dataset['reward_source']}: mean {short(rewards['mean'])}, sd {short(rewards['sd'])}; "
            f"p20 {short(rewards['p20'])}, median {short(rewards['p50'])}, p80 {short(rewards['p80'])}"
        )


@app.command("list")
def list_datasets(
    kind: Annotated[str | None, typer.Option(help="Only datasets of this kind.")] = None,
    name: Annotated[str | None, typer.Option(help="Only names containing this text.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many.")] = 50,
    json: JsonOption = False,
) -> None:
    """List datasets, newest first."""
    datasets = list(Client().pages("datasets", limit=limit, kind=kind, name=name))
    if json:
        print_json(datasets)
        return
    if not datasets:
        note("No datasets match. Import one: steerboard datasets import FILE")
        return
    keys = ("name", "kind", "rows", "held_out_rows", "created_at", "id")
    rows = [(*(dataset[key] for key in keys), _source(dataset["origin"])) for dataset in datasets]
    print_table(console(), _COLUMNS, rows)


def _source(origin: Out) -> str:
    return str(origin.get("hub") or origin.get("file") or origin.get("of") or origin.get("run") or "")


@app.command()
def show(
    dataset: Name,
    samples: Annotated[int, typer.Option(min=0, max=1000, help="Also print this many samples, as JSON.")] = 0,
    json: JsonOption = False,
) -> None:
    """Show a dataset's statistics, origin and reward sources."""
    client = Client()
    details: Out = client.get(path_of("datasets", dataset))
    details["reward_sources"] = client.get(path_of("datasets", dataset, "rewards"))
    if samples:
        details["samples"] = list(client.pages(path_of("datasets", dataset, "samples"), limit=samples, whole=True))
    if json:
        print_json(details)
        return
    out = console()
    what = f": {details['rows']:,} {details['kind']}, {details['held_out_rows']:,} held out"
    out.print(Text.assemble((details["name"], "bold"), what))
    out.print(f"  id {details['id']}, content {details['content_hash'][:16]}, created {moment(details['created_at'])}")
    origin = {key: value for key, value in details["origin"].items() if value not in (None, {}, [], 0)}
    out.print(f"  from {orjson.dumps(origin).decode()}")
    print_held_out_changes(details, out)
    _print_figures(details, out)
    for source in details["reward_sources"]:
        figures = source["figures"]
        words = f"  graded by {source['name']} ({source['kind']}): {figures['n']:,} rewards, "
        out.print(plain(f"{words}mean {short(figures['mean'])}, sd {short(figures['sd'])}"))
    for sample in details.get("samples", []):
        print(orjson.dumps(sample).decode())


@app.command()
def export(
    dataset: Name,
    file: Annotated[Path, typer.Argument(help="File to write: .jsonl, .jsonl.gz or .parquet.")],
    split: Annotated[Split, typer.Option(help="Only the rows of this split.")] = "all",
    json: JsonOption = False,
) -> None:
    """Export a dataset to a file that `datasets import` reads."""
    form = next((form for form in ("jsonl.gz", "parquet", "jsonl") if file.name.endswith(f".{form}")), None)
    if form is None:
        raise BadInput(
            f"{file.name} has an unknown file extension",
            code="wrong_file_type",
            hint="Use .jsonl, .jsonl.gz or .parquet.",
        )
    with console(stderr=True).status(f"Exporting {dataset}"):
        size = Client().download(path_of("datasets", dataset, "export"), file, format=form, split=split)
    tell(f"Wrote {file} ({size:,} bytes)", {"file": str(file), "bytes": size, "split": split}, json=json)


app.command("push")(push_dataset)


@app.command()
def delete(
    dataset: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    json: JsonOption = False,
) -> None:
    """Delete a dataset that no run and no other dataset refers to."""
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Delete dataset {dataset} with all its rows?", abort=True)
    Client().delete(path_of("datasets", dataset))
    tell(f"Deleted {dataset}", {"deleted": dataset}, json=json)
