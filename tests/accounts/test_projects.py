from __future__ import annotations

from account_people import SESSION, People
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts import service
from steerboard.accounts.tables import AuditEntry, Project
from steerboard.platform.database import transaction

PROJECTS = "/api/v1/projects"


def test_a_person_makes_a_project_owns_it_and_renames_it(people: People, sessions: sessionmaker[Session]) -> None:
    owner = people.add("ann", "owner")
    made = owner.send("POST", PROJECTS, {"name": "mine"})
    assert made.status_code == 201
    assert [(p["name"], p["role"]) for p in owner.session()["projects"]] == [("default", "owner"), ("mine", "owner")]
    renamed = owner.send("PATCH", f"{PROJECTS}/mine", {"name": "ours"})
    assert (renamed.status_code, renamed.json()) == (200, made.json() | {"name": "ours"})
    assert [p["name"] for p in owner.session()["projects"]] == ["default", "ours"]
    assert owner.client.get(f"{PROJECTS}/mine").status_code == 404
    assert owner.client.get(f"{PROJECTS}/{made.json()['id']}").json()["name"] == "ours"
    with sessions() as session:
        noted = session.scalars(select(AuditEntry).where(AuditEntry.action == "project.rename")).one()
    assert (str(noted.project_id), noted.detail) == (made.json()["id"], {"from": "mine"})


def test_a_name_belongs_to_one_project_and_only_owners_give_it(people: People) -> None:
    owner = people.add("ann", "owner")
    owner.send("POST", PROJECTS, {"name": "mine"})
    taken = owner.send("PATCH", f"{PROJECTS}/mine", {"name": "default"})
    assert (taken.status_code, taken.json()["code"]) == (409, "name_taken")
    assert owner.send("PATCH", f"{PROJECTS}/mine", {"name": "mine"}).status_code == 200
    assert owner.send("PATCH", f"{PROJECTS}/mine", {"name": "../mine"}).status_code == 422
    engineer = people.add("bob", "engineer")
    assert engineer.send("PATCH", f"{PROJECTS}/default", {"name": "new"}).json()["code"] == "missing_scope"
    assert engineer.send("PATCH", f"{PROJECTS}/mine", {"name": "new"}).status_code == 404
    assert engineer.client.get(SESSION).json()["projects"][0]["name"] == "default"


def test_a_renamed_default_project_is_still_the_one_that_a_start_uses(
    people: People, sessions: sessionmaker[Session]
) -> None:
    people.add("ann", "owner").send("PATCH", f"{PROJECTS}/default", {"name": "research"})
    with transaction(sessions) as session:
        project, _ = service.ensure_default(session, 0.1)
        assert project.name == "research"
        assert session.scalar(select(func.count()).select_from(Project)) == 1
