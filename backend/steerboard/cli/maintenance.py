"""`steerboard backup`, `restore` and `gc`: they work on the database and the store themselves, with or without a
`steerboard up` that runs."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Annotated

import typer

from steerboard.cli.output.console import JsonOption, note, print_json, tell

commands = typer.Typer()

_UNITS = {"m": 60, "h": 3600, "d": 86400}

Home = Annotated[Path | None, typer.Option(help="Folder for all data. [default: .steerboard, or STEERBOARD_HOME]")]


@commands.command()
def backup(
    dest: Annotated[str, typer.Argument(help="A folder or s3://BUCKET/PREFIX; it can hold any number of backups.")],
    with_key: Annotated[
        bool,
        typer.Option(
            "--with-key", help="Include the key of sealed secrets; anyone who can read the backup can then read them."
        ),
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Re-read files copied by earlier backups, and repair them.")
    ] = False,
    home: Home = None,
    json: JsonOption = False,
) -> None:
    """Copy a snapshot of the database and every artifact to DEST. Steerboard may keep running."""
    from steerboard.maintenance.backup import back_up
    from steerboard.maintenance.databases import database, settings_of
    from steerboard.platform.security.secrets import Secrets
    from steerboard.platform.storage.artifacts import ArtifactStore
    from steerboard.platform.storage.from_url import open_storage

    settings = settings_of(home)
    keys = Secrets(settings) if with_key else None
    with database(settings, migrated=False) as engine:
        made = back_up(
            engine,
            ArtifactStore(settings.artifact_url),
            open_storage(dest, private=True),
            keys=keys,
            verify=verify,
            say=note if json else typer.echo,
        )
    result = {"backup": made.manifest.name, "secrets": made.manifest.secrets, "lost": made.manifest.lost}
    tell(f"backup {made.manifest.name} is complete", result, json=json)
    if made.manifest.secrets and keys is None:
        note(
            f"The backup has {made.manifest.secrets} sealed secrets but not their key: keep STEERBOARD_SECRET_KEY, or "
            "the home's secret.key, elsewhere; or back up with --with-key."
        )
    if made.manifest.lost:
        typer.echo(f"In the artifact store itself, {len(made.manifest.lost)} blobs are missing or damaged:", err=True)
        for sha256 in made.manifest.lost[:20]:
            typer.echo(f"  {sha256}", err=True)
        raise typer.Exit(1)


@commands.command()
def restore(
    source: Annotated[str, typer.Argument(help="The folder or s3://BUCKET/PREFIX that holds the backups.")],
    name: Annotated[str | None, typer.Option("--backup", help="Name of the backup. [default: the newest]")] = None,
    home: Home = None,
    json: JsonOption = False,
) -> None:
    """Restore a backup into an empty database and an artifact store. Everything is verified first."""
    from steerboard.maintenance.databases import database, settings_of
    from steerboard.maintenance.restore import restore as bring_back
    from steerboard.platform.storage.artifacts import ArtifactStore
    from steerboard.platform.storage.from_url import open_storage

    settings = settings_of(home)
    with database(settings, migrated=False, new=True) as engine:
        manifest = bring_back(
            engine,
            ArtifactStore(settings.artifact_url),
            open_storage(source, private=True),
            home=settings.home,
            name=name,
            say=note if json else typer.echo,
        )
    if json:
        print_json({"backup": manifest.name, "secrets": manifest.secrets})
    if manifest.secrets and manifest.key_sha256 is None:
        note(f"{manifest.secrets} sealed secrets need the key they were sealed with: set STEERBOARD_SECRET_KEY.")


@commands.command()
def gc(
    older_than: Annotated[str, typer.Option(help="Keep anything newer than this, such as 14d, 12h or 30m.")] = "14d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what would be removed.")] = False,
    home: Home = None,
    json: JsonOption = False,
) -> None:
    """Delete what is no longer needed: unreferenced artifacts, unfinished uploads, resume data of ended runs."""
    from steerboard.maintenance.databases import database, settings_of
    from steerboard.maintenance.garbage_collection import collect
    from steerboard.maintenance.stored_checkpoints import clear_stored
    from steerboard.maintenance.stored_log_probs import clear_log_probs
    from steerboard.maintenance.work_folders import clear
    from steerboard.platform.storage.artifacts import ArtifactStore

    age = duration(older_than)
    settings = settings_of(home)
    with database(settings) as engine:
        folders = clear(engine, settings.home, settings.cache_mb, age=age, dry_run=dry_run)
        store = ArtifactStore(settings.artifact_url)
        checkpoints = clear_stored(engine, store, age=age, dry_run=dry_run)
        log_probs = clear_log_probs(store, age=age, dry_run=dry_run)
        done = collect(engine, store, age=age, dry_run=dry_run)
    if json:
        print_json(
            {
                "dry_run": dry_run,
                **{name: getattr(done, name) for name in ("blobs", "bytes", "artifacts", "uploads")},
                "checkpoints": {"count": checkpoints.checkpoints, "bytes": checkpoints.bytes},
                "log_probs": {"bytes": log_probs},
                "folders": {"count": folders.folders, "bytes": folders.bytes, "cache_bytes": folders.cache_bytes},
            }
        )
        return
    word = "would free" if dry_run else "freed"
    typer.echo(f"{word} {done.blobs} blobs of {done.artifacts} artifacts, {_megabytes(done.bytes)}")
    typer.echo(f"{word} {done.uploads} unfinished uploads")
    typer.echo(f"{word} {checkpoints.checkpoints} checkpoints in the store, {_megabytes(checkpoints.bytes)}")
    typer.echo(f"{word} {_megabytes(log_probs)} of log-probs in the store")
    typer.echo(f"{word} {folders.folders} folders of ended runs, {_megabytes(folders.bytes)}")
    if not dry_run:
        typer.echo(f"{word} {_megabytes(folders.cache_bytes)} of the cache")


def duration(given: str) -> dt.timedelta:
    """`14d`, `12h` or `30m`."""
    match = re.fullmatch(r"(\d{1,6})([mhd])", given)
    if match is None:
        raise typer.BadParameter(f"{given!r} is not a duration: write 14d, 12h or 30m", param_hint="--older-than")
    return dt.timedelta(seconds=int(match[1]) * _UNITS[match[2]])


def _megabytes(size: int) -> str:
    return f"{size / 2**20:,.1f} MB"
