from __future__ import annotations

import threading
import uuid
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from filled_tables import fill, rows_by_table
from sqlalchemy import Engine, func, select, text
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project, User
from steerboard.app.tables import metadata
from steerboard.arena.tables import Arena, Battle, Vote
from steerboard.platform import migrations
from steerboard.platform.database import make_engine, transaction
from steerboard.runs.tables import Run, RunAttempt

# What is computed again from other tables when someone looks. A migration forgets those that would differ now.
_COMPUTED = "evaluation_reports"


def test_the_migrated_database_has_exactly_the_tables_of_the_code(engine: Engine) -> None:
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_several_processes_may_migrate_at_once(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    failures: list[BaseException] = []

    def migrate() -> None:
        own = make_engine(engine.url.render_as_string(hide_password=False))
        try:
            migrations.migrate(own)
        except BaseException as error:
            failures.append(error)
        finally:
            own.dispose()

    threads = [threading.Thread(target=migrate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with engine.connect() as connection:
        assert migrations.current_revision(connection) == migrations.newest_revision()


def test_a_database_of_a_newer_version_is_left_alone(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(migrations.UnusableDatabase, match="9999"):
        migrations.migrate(engine)


@pytest.mark.long
def test_every_revision_goes_up_and_down_and_up_with_rows_in_all_tables_and_loses_none_of_an_older_table(
    engine: Engine,
) -> None:
    """Filled at each revision on the way up, so that a migration meets rows in every table it changes."""
    revisions = [script.revision for script in migrations.scripts().walk_revisions()][::-1]
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
        at: dict[str, dict[str, list[dict[str, Any]]]] = {}
        for revision in revisions:
            migrations.upgrade(connection, revision)
            fill(connection)
            at[revision] = rows_by_table(connection)
        for revision in reversed(revisions[:-1]):
            migrations.downgrade(connection, revision)
            kept = rows_by_table(connection)
            assert kept.pop(_COMPUTED, []) in ([], at[revision].pop(_COMPUTED, [])), f"down to {revision}"
            assert kept == at[revision], f"down to {revision}"
        migrations.upgrade(connection, revisions[-1])
        after = rows_by_table(connection)
        for table, rows in at[revisions[0]].items():
            assert [row.items() >= old.items() for row, old in zip(after[table], rows, strict=True)] == [True]
        fill(connection)
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_evaluate_runs_that_wait_for_a_worker_or_have_one_start_their_evaluation_after_the_upgrade(
    engine: Engine, sessions: sessionmaker[Session], project: Project
) -> None:
    def run(kind: str, state: str) -> uuid.UUID:
        with transaction(sessions) as session:
            made = Run(
                project_id=project.id,
                name=f"{kind}-{state}",
                kind=kind,
                config={"run": kind},
                state=state,
                reason="as it was",
                pool="default",
                priority=0,
                attempt=1,
                max_attempts=3,
                lease_owner="w" if state == "running" else None,
                lease_expires_at=func.clock_timestamp() if state == "running" else None,
                reuse=True,
                device_seconds=0.0,
                failed_device_seconds=0.0,
                created_by="tester",
            )
            session.add(made)
            session.flush()
            session.add(RunAttempt(run_id=made.id, attempt=1, worker="w", devices=1, device_seconds=0.0))
            return made.id

    wanted = {run("evaluate", "queued"): "pending", run("evaluate", "running"): "pending"}
    wanted |= {run("evaluate", "succeeded"): "succeeded", run("score", "queued"): "queued"}
    with engine.begin() as connection:
        migrations.downgrade(connection, "0014")
        migrations.upgrade(connection, migrations.newest_revision())
    with transaction(sessions) as session:
        runs = {id_: session.get_one(Run, id_) for id_ in wanted}
        assert {id_: row.state for id_, row in runs.items()} == wanted
        assert all(row.lease_owner is None for row in runs.values())
        ended = session.scalars(select(RunAttempt.outcome).where(RunAttempt.ended_at.is_not(None))).all()
    assert list(ended) == ["stopped", "stopped"]


def test_battles_and_votes_of_two_sides_are_what_they_were_after_the_upgrade(
    engine: Engine, sessions: sessionmaker[Session], project: Project
) -> None:
    with transaction(sessions) as session:
        session.add(user := User(name="anna"))
        given: dict[str, Any] = {"project_id": project.id, "seed": 1}
        for name, sides, battles in (
            ("duel", 2, (([2, 0], "b"), ([11, 3], "all_bad"))),
            ("trio", 3, (([0, 1, 2], "c"),)),
        ):
            arena = Arena(name=name, entrants=[], sides=sides, categories=[], state="open", created_by="anna", **given)
            session.add(arena)
            session.flush()
            for number, (entrants, verdict) in enumerate(battles):
                battle = Battle(arena_id=arena.id, user_id=user.id, number=number, entrants=entrants, **given)
                session.add(battle)
                session.flush()
                about: dict[str, Any] = {"arena_id": arena.id, "user_id": user.id, "conversations": []}
                about |= {"entrant_set": " ".join(map(str, sorted(entrants))), "prompt_hash": "h"}
                session.add(Vote(battle_id=battle.id, submission="s", verdict=verdict, counts=True, **about))
    with engine.begin() as connection:
        migrations.downgrade(connection, "0030")
        was = text("SELECT a, b, verdict, pair FROM arena_battles JOIN arena_votes ON id = battle_id ORDER BY number")
        assert connection.execute(was).all() == [(2, 0, "b", "0 2"), (11, 3, "both_bad", "3 11")]
        migrations.upgrade(connection, migrations.newest_revision())
    with sessions() as session:
        voted_on = select(Battle.entrants, Vote.verdict, Vote.entrant_set).join(Vote, Vote.battle_id == Battle.id)
        rows = session.execute(voted_on.order_by(Battle.number)).all()
        assert rows == [([2, 0], "b", "0 2"), ([11, 3], "all_bad", "3 11")]
        assert session.scalars(select(Arena.name).where(Arena.sides == 2)).all() == ["duel"]


def test_imported_reviews_of_both_orders_count_once_after_the_upgrade(engine: Engine) -> None:
    with engine.begin() as connection:
        migrations.downgrade(connection, "0031")
        fill(connection)
        connection.execute(text("DELETE FROM evaluation_verdicts"))
        judge = connection.execute(
            text("UPDATE evaluation_judges SET imported = jsonb_build_object('format', 'vicuna_review') RETURNING id")
        ).scalar_one()
        first_entrant = connection.execute(text("SELECT id FROM evaluation_entrants")).scalar_one()
        other = connection.execute(
            text(
                "INSERT INTO evaluation_entrants (id, evaluation_id, position, name, source, decoding, samples)"
                " SELECT gen_random_uuid(), evaluation_id, 2, 'other', source, decoding, samples"
                " FROM evaluation_entrants RETURNING id"
            )
        ).scalar_one()
        # Question 1 in both orders, question 2 in one.
        for position, entrant, first, value in (
            (1, first_entrant, True, 8),
            (1, other, False, 6),
            (1, first_entrant, False, 7),
            (1, other, True, 9),
            (2, first_entrant, True, 3),
            (2, other, False, 4),
        ):
            connection.execute(
                text(
                    "INSERT INTO evaluation_verdicts (judge_id, position, turn, a, a_first, value, weight, status,"
                    " superseded) VALUES (:judge, :position, 1, :entrant, :first, :value, 1, 'ok', false)"
                ),
                {"judge": judge, "position": position, "entrant": entrant, "first": first, "value": value},
            )
        counted = text("SELECT position, value FROM evaluation_verdicts WHERE NOT superseded ORDER BY id")
        migrations.upgrade(connection, migrations.newest_revision())
        assert connection.execute(counted).all() == [(1, 7), (1, 9), (2, 3), (2, 4)]
        assert connection.execute(text("SELECT count(*) FROM evaluation_reports")).scalar_one() == 0
        migrations.downgrade(connection, "0031")
        assert len(connection.execute(counted).all()) == 6
        migrations.upgrade(connection, migrations.newest_revision())
