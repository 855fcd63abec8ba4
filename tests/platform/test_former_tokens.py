"""An upgrade ends the tokens of people who were removed or demoted while tokens did not end with that."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, text

from steerboard.platform import migrations

_START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class Former:
    """A project at the revision before tokens had owners. Every step is a minute after the one before."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.project = uuid.uuid4()
        self._now = _START
        self._ids: dict[str, uuid.UUID] = {}
        self._insert("projects", id=self.project, name="default", split_salt="s", held_out_fraction=0.1)

    def _insert(self, table: str, **row: object) -> None:
        columns, values = ", ".join(row), ", ".join(f":{name}" for name in row)
        self.connection.execute(text(f"INSERT INTO {table} ({columns}) VALUES ({values})"), row)

    def _log(self, actor: str, action: str, target: str, detail: str = "{}", project: uuid.UUID | None = None) -> None:
        row = {"actor": actor, "action": action, "target": target, "detail": detail, "created_at": self._now}
        self._insert("audit_log", id=uuid.uuid4(), project_id=project or self.project, **row)
        self._now += dt.timedelta(minutes=1)

    def person(self, name: str) -> None:
        self._ids[name] = uuid.uuid4()
        self._insert("users", id=self._ids[name], name=name)

    def join(self, name: str, role: str) -> None:
        self._insert("memberships", project_id=self.project, user_id=self._ids[name], role=role)
        self._log("user:owner", "member.add", f"user {name}")

    def change(self, name: str, role: str) -> None:
        self.connection.execute(
            text("UPDATE memberships SET role = :role WHERE user_id = :user"), {"role": role, "user": self._ids[name]}
        )
        self._log("user:owner", "member.change", f"user {name}", f'{{"to": "{role}"}}')

    def remove(self, name: str) -> None:
        self.connection.execute(text("DELETE FROM memberships WHERE user_id = :user"), {"user": self._ids[name]})
        self._log("user:owner", "member.remove", f"user {name}")

    def token(self, name: str, by: str, *scopes: str) -> None:
        made = uuid.uuid4()
        given = {"scopes": list(scopes or ["read"]), "created_at": self._now, "project_id": self.project}
        self._insert("api_tokens", id=made, name=name, token_hash=made.hex, hint="sb_", **given)
        self._log(by, "token.create", f"token {name} {made}")

    def revoke(self, name: str) -> None:
        self.connection.execute(
            text("UPDATE api_tokens SET revoked_at = :now WHERE name = :name AND revoked_at IS NULL"),
            {"now": self._now, "name": name},
        )
        self._log("user:owner", "token.revoke", f"token {name}")

    def ended(self) -> set[str]:
        """The live tokens that an upgrade ends."""
        before = self._live()
        migrations.upgrade(self.connection, "head")
        return before - self._live()

    def _live(self) -> set[str]:
        return set(self.connection.scalars(text("SELECT name FROM api_tokens WHERE revoked_at IS NULL")))


@pytest.fixture
def former(engine: Engine) -> Iterator[Former]:
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
        migrations.upgrade(connection, "0012")
        yield Former(connection)


def test_tokens_of_those_who_have_gone_end_and_others_stay(former: Former) -> None:
    for name in ("ann", "bob"):
        former.person(name)
        former.join(name, "owner")
    former.token("of-ann", "user:ann", "admin")
    former.token("of-bob", "user:bob", "read")
    former.token("ci", "token:local")
    former.remove("bob")
    assert former.ended() == {"of-bob"}
    noted = former.connection.execute(
        text("SELECT actor, split_part(target, ' ', 2), detail FROM audit_log WHERE action = 'token.revoke'")
    ).all()
    assert [tuple(entry) for entry in noted] == [("upgrade", "of-bob", {"of": "bob"})]


def test_tokens_that_can_do_more_than_their_person_end(former: Former) -> None:
    former.person("bob")
    former.join("bob", "owner")
    for scope in ("read", "write", "run", "admin"):
        former.token(scope, "user:bob", scope)
    former.token("two", "user:bob", "read", "admin")
    former.change("bob", "engineer")
    assert former.ended() == {"admin", "two"}


def test_coming_back_keeps_only_what_was_made_since(former: Former) -> None:
    for name in ("bob", "eve"):
        former.person(name)
        former.join(name, "owner")
        former.token(f"{name}-before", f"user:{name}", "admin")
        former.token(f"{name}-reads", f"user:{name}", "read")
    former.remove("bob")
    former.join("bob", "owner")
    former.change("eve", "viewer")
    former.change("eve", "owner")
    for name in ("bob", "eve"):
        former.token(f"{name}-after", f"user:{name}", "admin")
    assert former.ended() == {"bob-before", "bob-reads", "eve-before"}


def test_tokens_made_with_a_token_end_with_it(former: Former) -> None:
    for name in ("ann", "bob"):
        former.person(name)
        former.join(name, "owner")
    former.token("deploy", "user:bob", "admin")
    former.token("child", "token:deploy", "admin")
    former.token("grandchild", "token:child", "read")
    former.revoke("deploy")
    # Another of the same name, of the whole server.
    former.token("child-of-nobody", "token:deploy", "admin")
    # Another of the same name, and someone else's.
    former.token("deploy", "user:ann", "admin")
    former.token("child-of-ann", "token:deploy", "read")
    former.remove("bob")
    assert former.ended() == {"child", "grandchild"}
