"""Links to a report: for everyone who has one, until they expire or are revoked, without names while people rank."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import ApiToken, AuditEntry, Project, SignInAttempt
from steerboard.evaluation.ranking.tables import Campaign
from steerboard.evaluation.report.blinding import blinded
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.database import transaction
from steerboard.platform.security.credentials import secret_hash
from steerboard.sharing import links
from steerboard.sharing.tables import ShareLink
from support.processes.command_line import Steerboard, steerboard, url
from support.rows.evaluation_rows import Evaluated
from support.servers.app_client import AppClient

__all__ = ["steerboard", "url"]
URL = "/api/v1/projects/default/evaluations/vicuna/report-links"
SECRETS = (
    "zebra-sft", "zebra-dt", "zebra-rm", "zebra-judge", "zebra-model", "zebra-campaign", "zebra-person", "zebra-family",
    "zebra-data", "zebra-hash", "zebra-method", "vicuna",
)  # fmt: skip


@pytest.fixture
def made(sessions: sessionmaker[Session], project: Project) -> Evaluated:
    """Everything in it has a name that must not be shown while people rank."""
    evaluation = Evaluated(sessions, project, prompts=24)
    evaluation.entrant("zebra-sft", family="zebra-family", method="sft", letters=100)
    chosen = {"n": 4, "reward": "zebra-rm", "content_hash": "zebra-hash"}
    evaluation.entrant("zebra-dt", family="other", method="zebra-method", decoding={"best_of": chosen}, letters=200)
    evaluation.entrant("zebra-third")
    table = {"zebra-sft": [4] * 24, "zebra-dt": [7] * 24, "zebra-third": [5] * 24}
    evaluation.scores(table, name="zebra-judge", model="zebra-model", family="zebra-family")
    against_one = [
        {"position": at, "a": name, "b": "zebra-sft", "a_first": True, "value": 1.0}
        for at in range(24)
        for name in ("zebra-dt", "zebra-third")
    ]
    evaluation.judge("alpaca_eval", against_one, name="zebra-judge-2")
    evaluation.rewards({name: list(map(float, values)) for name, values in table.items()}, name="zebra-rm")
    ranks = {"zebra-sft": 3, "zebra-dt": 1, "zebra-third": 2}
    evaluation.campaign(
        {"zebra-person": dict.fromkeys(range(24), ranks)}, name="zebra-campaign", state="open", salt="s"
    )
    evaluation.seen({"match": "exact", "dataset": "zebra-data", "row": 1, "overlap": 1.0}, checked=("zebra-data",))
    return evaluation


@pytest.fixture
def anybody(app: FastAPI) -> Iterator[TestClient]:
    """A client without an account."""
    with AppClient(app) as stranger:
        yield stranger


def share(client: TestClient, **body: object) -> str:
    answer = client.post(URL, json=body)
    assert answer.status_code == 201
    return str(answer.json()["path"])


def test_a_link_shows_the_report_without_an_account(made: Evaluated, client: TestClient, anybody: TestClient) -> None:
    with transaction(made.sessions) as session:
        session.execute(update(Campaign).values(state="closed"))
    page = anybody.get(share(client))
    assert page.status_code == 200
    assert "zebra-dt wins" in page.text
    assert "zebra-person" not in page.text
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["x-robots-tag"] == "noindex, nofollow"
    assert page.headers["cache-control"] == "no-store"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'; style-src 'unsafe-inline'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "set-cookie" not in page.headers


def test_the_command_shares_lists_and_revokes(made: Evaluated, steerboard: Steerboard, url: str, token: str) -> None:
    done = steerboard(url, token, "evaluations", "share", "vicuna", "--days", "3")
    assert httpx.get(done.stdout.strip()).status_code == 200
    link = done.stderr.split()[-1]
    (listed,) = json.loads(steerboard(url, token, "evaluations", "links", "vicuna", "--json").stdout)
    assert listed["id"] == link
    assert link in steerboard(url, token, "evaluations", "links", "vicuna").stdout
    assert steerboard(url, token, "evaluations", "revoke", "vicuna", link).returncode == 0
    assert httpx.get(done.stdout.strip()).status_code == 404
    assert "No links" in steerboard(url, token, "evaluations", "links", "vicuna").stderr
    refused = steerboard(url, token, "evaluations", "revoke", "vicuna", "nonsense")
    assert (refused.returncode, "Traceback" in refused.stderr) == (1, False)


def test_while_people_rank_no_name_is_told(made: Evaluated, client: TestClient, anybody: TestClient) -> None:
    page = anybody.get(share(client)).text
    assert [name for name in SECRETS if name in page] == []
    letter = next(candidate for candidate in "ABC" if f"{candidate} wins: against" in page)
    assert f"The answers of {letter} are 20.00 times as long as those of" in page
    assert "entrants are called A, B, C" in page
    with transaction(made.sessions) as session:
        session.execute(update(Campaign).values(state="paused"))
    assert "zebra" not in anybody.get(share(client)).text
    with transaction(made.sessions) as session:
        session.execute(update(Campaign).values(state="closed"))
    assert "zebra-dt wins" in anybody.get(share(client)).text


def test_letters_are_the_same_in_every_figure_and_tell_no_order(made: Evaluated) -> None:
    report = made.report()
    for salt in ("one", "two", "three"):
        blind = blinded(report, salt)
        assert blind.headline is not None
        best = blind.headline.winner
        assert best is not None
        assert [section.comparison.winner for section in (*blind.human, *blind.judges, *blind.rewards)] == [best] * 3
        assert blind.human[0].campaign == "1"
        # A judge that only compares with a baseline would show which one that is.
        assert [judge.judge for judge in blind.judges] == ["1"]
        for section in (*blind.human, *blind.judges, *blind.rewards):
            assert [row.entrant for row in section.comparison.scores] == ["A", "B", "C"]
            assert all(row.a < row.b for row in section.comparison.pairs)
            rates = {(row.a, row.b): row.win_rate.value for row in section.comparison.pairs}
            assert all(rate == 1.0 for (a, b), rate in rates.items() if a == best)
            assert all(rate == 0.0 for (a, b), rate in rates.items() if b == best)
    assert len({tuple(e.length.value for e in blinded(report, salt).entrants) for salt in map(str, range(12))}) > 1


def test_unknown_expired_and_revoked_links_answer_alike(
    made: Evaluated, client: TestClient, anybody: TestClient
) -> None:
    expired, revoked = share(client, expires_in_days=1), share(client)
    listed = client.get(URL).json()
    assert len(listed) == 2
    assert client.delete(f"{URL}/{listed[0]['id']}").status_code == 204
    assert client.delete(f"{URL}/{listed[0]['id']}").status_code == 204
    with transaction(made.sessions) as session:
        first = session.scalars(select(ShareLink).order_by(ShareLink.id)).first()
        assert first is not None
        first.expires_at = first.created_at - dt.timedelta(seconds=1)
    answers = [anybody.get(path) for path in ("/shared/guess", expired, revoked)]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.content for answer in answers}) == 1
    headers = [{k: v for k, v in answer.headers.items() if k not in ("date", "x-request-id")} for answer in answers]
    assert headers[0] == headers[1] == headers[2]
    assert client.get(URL).json() == []


def test_who_tries_many_links_has_to_wait_and_a_link_that_works_still_does(
    made: Evaluated, client: TestClient, anybody: TestClient
) -> None:
    path = share(client)
    statuses = [anybody.get(f"/shared/guess-{at}").status_code for at in range(11)]
    assert statuses == [404] * 10 + [429]
    refused = anybody.get("/shared/guess")
    assert (refused.json()["code"], int(refused.headers["retry-after"]) > 0) == ("too_many_attempts", True)
    assert anybody.get(path).status_code == 200
    with transaction(made.sessions) as session:
        # Passwords from the same address are counted apart.
        assert set(session.scalars(select(SignInAttempt.address))) == {"shared testclient"}


def test_links_are_kept_as_hashes_and_noted_in_the_audit_log(made: Evaluated, client: TestClient) -> None:
    made_link = client.post(URL, json={"expires_in_days": 30}).json()
    code = made_link["path"].removeprefix("/shared/")
    life = dt.datetime.fromisoformat(made_link["expires_at"]) - dt.datetime.fromisoformat(made_link["created_at"])
    assert life.days in (29, 30)
    assert "path" not in client.get(URL).json()[0]
    client.delete(f"{URL}/{made_link['id']}")
    with transaction(made.sessions) as session:
        assert session.scalars(select(ShareLink.code_hash)).all() == [secret_hash(code)]
        noted = session.scalars(select(AuditEntry).where(AuditEntry.action.startswith("share_link"))).all()
        assert [entry.action for entry in noted] == ["share_link.create", "share_link.revoke"]
        assert not any(code in str(entry.detail) + entry.target for entry in noted)


def test_who_only_reads_makes_and_revokes_no_link(made: Evaluated, client: TestClient, project: Project) -> None:
    with transaction(made.sessions) as session:
        given = {"project_id": project.id, "hint": "x"}
        session.add(ApiToken(name="reader", token_hash=secret_hash("reader"), scopes=["read"], **given))
    share(client)
    reader = {"Authorization": "Bearer reader"}
    (link,) = client.get(URL, headers=reader).json()
    for answer in (
        client.post(URL, json={}, headers=reader),
        client.delete(f"{URL}/{link['id']}", headers=reader),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "missing_scope")
    for body in ({"expires_in_days": 0}, {"expires_in_days": 366}, {"expires": 1}):
        assert client.post(URL, json=body).status_code == 422
    missing = client.delete(f"{URL}/{made.id}")
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown_link")


def test_an_evaluation_has_so_many_links_and_takes_them_with_it(
    made: Evaluated, client: TestClient, anybody: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "MOST_LINKS", 2)
    path = share(client)
    share(client)
    refused = client.post(URL, json={})
    assert (refused.status_code, refused.json()["code"]) == (409, "too_many_links")
    with transaction(made.sessions) as session:
        session.delete(session.get_one(Evaluation, made.id))
    assert anybody.get(path).status_code == 404
    with transaction(made.sessions) as session:
        assert session.scalar(select(func.count()).select_from(ShareLink)) == 0


def test_a_retried_call_makes_one_link(made: Evaluated, client: TestClient) -> None:
    key = {"Idempotency-Key": "once"}
    first, again = (client.post(URL, json={}, headers=key).json() for _ in range(2))
    assert first == again
    assert len(client.get(URL).json()) == 1
