"""`steerboard datasets`: import, list, show, export, delete."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import httpx
import orjson
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from steerboard.cli.client import Client
from steerboard_contracts.errors import BadInput

app = typer.Typer(no_args_is_help=True, help="Import, look at and export datasets.")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]
Out = dict[str, Any]

_SHOWN_BAD = 10
# An import of a large file takes as long as it takes; only silence on the line itself is an error.
_PATIENT = httpx.Timeout(None, connect=5.0)


class _Watched:
    """A file that tells how much of it has been read, for the upload's progress bar."""

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
    file: Annotated[str, typer.Argument(help="A jsonl, jsonl.gz, csv or parquet file, or hub:ORG/NAME[@REV][:SPLIT].")],
    name: Annotated[str | None, typer.Option(help="Name of the dataset; the file's by default.")] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="instructions, preferences, prompts, unpaired or labelled; recognised by default."),
    ] = None,
    map: Annotated[
        list[str] | None, typer.Option("--map", help="FIELD=COLUMN[,FIELD=COLUMN...], e.g. reward=gpt4_score.")
    ] = None,
    bad_rows: Annotated[str, typer.Option(help="refuse: import nothing; skip: leave the bad rows out.")] = "refuse",
    min_margin: Annotated[
        float | None, typer.Option(help="Drop preferences with a smaller margin between the two sides.")
    ] = None,
    clean: Annotated[
        bool, typer.Option(help="Drop duplicates, identical sides, empty and diverging dialogues.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Import a dataset. Every row is checked as training will check it; all of it or nothing is stored."""
    console = Console(stderr=True)
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
        with console.status(f"Fetching and importing {file}"):
            # A form like the others, so the field that is sent decides between file and hub.
            report = _post(fields, [(key, (None, value)) for key, value in fields.items()])
    else:
        report = _upload(Path(file), fields, console)
    if as_json:
        print(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())
    else:
        print_report(report, Console())


def _default_name(file: str) -> str:
    stem = file.removeprefix("hub:").rsplit("/", 1)[-1]
    for suffix in (".gz", ".jsonl", ".json", ".csv", ".tsv", ".parquet"):
        stem = stem.removesuffix(suffix)
    return "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in stem)


def _upload(path: Path, fields: dict[str, str], console: Console) -> Out:
    if not path.is_file():
        raise BadInput(
            f"there is no file {path}", code="no_such_file", hint="Check the path; a hub name is hub:ORG/NAME."
        )
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress, path.open("rb") as file:
        task = progress.add_task(f"Uploading {path.name}", total=path.stat().st_size)
        return _post(fields, {"file": (path.name, _Watched(file, progress, task), "application/octet-stream")})


def _post(fields: dict[str, str], files: Any) -> Out:
    data = fields if isinstance(files, dict) else None
    report: Out = Client().post("datasets/import", data=data, files=files, timeout=_PATIENT)
    return report


def print_report(report: Out, console: Console) -> None:
    """What happened to every row that was read."""
    dataset = report["dataset"]
    origin = dataset["origin"]
    forms = {
        "transcripts": ", Human/Assistant transcripts split into turns",
        "dialogues": ", dialogues split into turns",
    }
    console.print(
        f"[green]Imported[/] [bold]{dataset['name']}[/]: {report['rows']:,} {dataset['kind']} "
        f"({dataset['held_out_rows']:,} held out) from {escape(origin['file'])}"
    )
    console.print(
        f"  read as {report['format']}{forms.get(report['form'], '')}; "
        + ", ".join(escape(f"{field} from {column!r}") for field, column in report["columns"].items())
    )
    console.print(f"  {report['read']:,} rows read")
    for rule, count in report["cleaned"].items():
        console.print(f"  {count:,} cleaned away: {rule.replace('_', ' ')}")
    if report["bad_rows"]:
        console.print(f"  [yellow]{report['bad_rows']:,} bad rows skipped[/]")
        for reason, count in list(report["bad_counts"].items())[:_SHOWN_BAD]:
            console.print(f"    {count:,} x {reason}", markup=False)
        lines = ", ".join(str(bad["line"]) for bad in report["bad"][:_SHOWN_BAD])
        more = ", ..." if report["bad_rows"] > _SHOWN_BAD else ""
        console.print(f"    lines {lines}{more}")
    _print_figures(dataset, console)


def _print_figures(dataset: Out, console: Console) -> None:
    for label, key in (("prompts", "prompt_characters"), ("responses", "response_characters")):
        if spread := dataset[key]:
            console.print(
                f"  {label}: {spread['mean']:,.0f} characters on average, {spread['p50']:,.0f} median, "
                f"{spread['p95']:,.0f} at 95%, {spread['max']:,.0f} at most"
            )
    if rewards := dataset["rewards"]:
        console.print(
            f"  rewards of {dataset['reward_source']}: mean {rewards['mean']:.4g}, sd {rewards['sd']:.4g}; "
            f"p20 {rewards['p20']:.4g}, median {rewards['p50']:.4g}, p80 {rewards['p80']:.4g}"
        )


@app.command("list")
def list_datasets(
    kind: Annotated[str | None, typer.Option(help="Only this kind.")] = None,
    name: Annotated[str | None, typer.Option(help="Only names that contain this.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most this many.")] = 50,
    as_json: Json = False,
) -> None:
    """List datasets, newest first."""
    found = list(Client().pages("datasets", limit=limit, kind=kind, name=name))
    if as_json:
        print(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
        return
    if not found:
        print("No datasets yet. Import one: steerboard datasets import FILE")
        return
    table = Table("Name", "Kind", "Rows", "Held out", "From", "Created", box=None, header_style="bold")
    for dataset in found:
        origin = dataset["origin"]
        source = origin.get("hub") or origin.get("file") or origin.get("of") or origin.get("run") or ""
        rows, held_out = f"{dataset['rows']:,}", f"{dataset['held_out_rows']:,}"
        created = dataset["created_at"][:16].replace("T", " ")
        table.add_row(dataset["name"], dataset["kind"], rows, held_out, str(source), created)
    Console().print(table)


@app.command()
def show(
    dataset: Annotated[str, typer.Argument(help="Name or id.")],
    samples: Annotated[int, typer.Option(min=0, max=1000, help="Also print this many samples, as JSON.")] = 0,
    as_json: Json = False,
) -> None:
    """Show a dataset's figures, where it came from, and its reward sources."""
    client = Client()
    found: Out = client.get(f"datasets/{dataset}")
    found["reward_sources"] = client.get(f"datasets/{dataset}/rewards")
    if samples:
        found["samples"] = list(client.pages(f"datasets/{dataset}/samples", limit=samples))
    if as_json:
        print(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
        return
    console = Console()
    console.print(f"[bold]{found['name']}[/]: {found['rows']:,} {found['kind']}, {found['held_out_rows']:,} held out")
    console.print(f"  id {found['id']}, content {found['content_hash'][:16]}, created {found['created_at'][:16]}")
    origin = {key: value for key, value in found["origin"].items() if value not in (None, {}, [], 0)}
    console.print(f"  from {orjson.dumps(origin).decode()}", markup=False, highlight=False)
    _print_figures(found, console)
    for source in found["reward_sources"]:
        figures = source["figures"]
        console.print(
            f"  graded by {source['name']} ({source['kind']}): {figures['n']:,} rewards, mean {figures['mean']:.4g}, "
            f"sd {figures['sd']:.4g}"
        )
    for sample in found.get("samples", []):
        print(orjson.dumps(sample).decode())


@app.command()
def export(
    dataset: Annotated[str, typer.Argument(help="Name or id.")],
    file: Annotated[Path, typer.Argument(help="Where to write; .jsonl, .jsonl.gz or .parquet.")],
) -> None:
    """Write a dataset to a file that import reads back."""
    form = next((form for form in ("jsonl.gz", "parquet", "jsonl") if file.name.endswith(f".{form}")), None)
    if form is None:
        raise BadInput(
            f"{file.name} has no known ending", code="wrong_file_type", hint="Use .jsonl, .jsonl.gz or .parquet."
        )
    with Console(stderr=True).status(f"Exporting {dataset}"):
        size = Client().download(f"datasets/{dataset}/export", file, format=form)
    print(f"Wrote {file} ({size:,} bytes)")


@app.command()
def delete(
    dataset: Annotated[str, typer.Argument(help="Name or id.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a dataset that no run and no other dataset refers to."""
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Delete dataset {dataset} with all its rows?", abort=True)
    Client().delete(f"datasets/{dataset}")
    print(f"Deleted {dataset}")
