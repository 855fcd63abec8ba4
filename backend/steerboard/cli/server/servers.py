"""`steerboard api`, `migrate` and `sign-in-link`: the processes of a server, for containers and service managers."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from steerboard.cli.output.console import JsonOption, tell
from steerboard.platform.settings import get_settings

commands = typer.Typer()


@commands.command()
def api(
    host: Annotated[str | None, typer.Option(help="Address to listen on. [default: 127.0.0.1]")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one. [default: 8700]")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Number of server processes.")] = 1,
) -> None:
    """Serve only the API and the dashboard. Needs the URLs of a migrated database and of Redis."""
    from steerboard.cli.server.api_server import serve

    if host is not None:
        os.environ["STEERBOARD_HOST"] = host  # also for the processes that answer
        get_settings.cache_clear()
    settings = get_settings()
    serve(settings.host, settings.port if port is None else port, workers, typer.echo)


@commands.command()
def migrate(json: JsonOption = False) -> None:
    """Migrate the database to this version's schema, and create the first project and owner. Safe to repeat; concurrent
    calls wait for each other."""
    from steerboard.accounts import service as accounts
    from steerboard.platform import migrations
    from steerboard.platform.database import make_engine, make_sessions, transaction
    from steerboard.platform.processes import startup

    settings = get_settings()
    startup.require(settings)
    startup.wait_for_database(settings, migrated=False)
    engine = make_engine(settings.database_url, pool_size=1)
    migrations.migrate(engine)
    with transaction(make_sessions(engine)) as session:
        accounts.ensure_default(session, settings.held_out_fraction)
    revision = migrations.newest_revision()
    tell(f"The database is at revision {revision}", {"revision": revision}, json=json)


@commands.command("sign-in-link")
def sign_in_link(
    user: Annotated[str, typer.Option(help="User to sign in.")] = "owner",
    json: JsonOption = False,
) -> None:
    """Print a one-time sign-in link, created directly in the database, for a new server or when no other way in is
    left."""
    from sqlalchemy import select

    from steerboard.accounts import service as accounts
    from steerboard.accounts.tables import AuditEntry, User
    from steerboard.platform.database import make_engine, make_sessions, transaction
    from steerboard.platform.http.errors import NotFound
    from steerboard.platform.processes import startup

    settings = get_settings()
    startup.require(settings)
    startup.wait_for_database(settings)
    with transaction(make_sessions(make_engine(settings.database_url, pool_size=1))) as session:
        person = session.scalar(select(User).where(User.name == user))
        if person is None:
            raise NotFound(
                f"there is no user `{user}`", hint="The first user is `owner`; others are members of a project."
            )
        code, _ = accounts.create_sign_in_link(session, person.id)
        session.add(AuditEntry(actor="server", action="sign_in_link.create", target=f"user {user}", detail={}))
    url = f"{settings.public_url}/sign-in/{code}"
    tell(url, {"url": url}, json=json)
