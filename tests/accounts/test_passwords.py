from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from account_people import SESSION, People
from argon2 import PasswordHasher
from fastapi.testclient import TestClient
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts import attempts, passwords, service
from steerboard.accounts.tables import AuditEntry, KnownAddress, SignInAttempt, User
from steerboard.platform.database import transaction

PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def _quick_hashes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The hashes are still argon2's, at hardly any cost, except where the cost is what is tested."""
    if "takes_as_long" in request.node.name:
        yield
        return
    monkeypatch.setattr(passwords, "_hasher", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
    passwords._nobodys.cache_clear()
    yield
    passwords._nobodys.cache_clear()


def note_failures(sessions: sessionmaker[Session], count: int, name: str, address: str) -> None:
    with transaction(sessions) as session:
        session.add_all(SignInAttempt(user_name=name, address=address) for _ in range(count))


def test_a_password_signs_in_and_the_session_says_what_one_may_do(people: People) -> None:
    people.with_password("ann", PASSWORD)
    browser = people.browser()
    answer = browser.sign_in("ann", PASSWORD)
    assert answer.status_code == 200
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert browser.session() == answer.json()
    assert answer.json() == {
        "user": "ann",
        "csrf_token": answer.json()["csrf_token"],
        "has_password": True,
        "may_create_projects": False,
        "is_operator": False,
        "projects": [
            {
                "name": "default",
                "id": str(people.project.id),
                "role": "engineer",
                "allows": ["rank", "read", "review", "run", "write"],
            }
        ],
    }
    assert browser.client.get("/api/v1/projects/default").status_code == 200


def test_a_password_is_stored_as_argon2(people: People, sessions: sessionmaker[Session]) -> None:
    people.with_password("ann", PASSWORD)
    with sessions() as session:
        stored = session.scalar(select(User.password_hash).where(User.name == "ann"))
        noted = " ".join(session.scalars(select(AuditEntry.target)))
    assert stored is not None
    assert stored.startswith("$argon2id$")
    assert PASSWORD not in stored + noted


def test_a_wrong_user_a_wrong_password_and_no_password_look_alike(people: People) -> None:
    people.with_password("ann", PASSWORD)
    people.add("link-only", "viewer")
    browser = people.browser()
    answers = [browser.sign_in(*guess) for guess in (("ann", "x"), ("nobody", PASSWORD), ("link-only", ""))]
    assert [answer.status_code for answer in answers] == [401, 401, 401]
    assert len({answer.text for answer in answers}) == 1
    assert answers[0].json()["code"] == "wrong_credentials"
    assert not any("set-cookie" in answer.headers for answer in answers)


def test_an_unknown_user_takes_as_long_as_a_wrong_password(people: People) -> None:
    people.with_password("ann", PASSWORD)
    browser = people.browser()

    def quickest(name: str) -> float:
        def once() -> float:
            began = time.process_time()
            browser.sign_in(name, "wrong password")
            return time.process_time() - began

        return min(once() for _ in range(3))

    browser.sign_in("warm", "up")
    known, unknown = quickest("ann"), quickest("nobody")
    assert unknown > known / 2


def test_too_many_failures_of_a_name_from_an_address_have_to_wait_there_even_with_the_right_password(
    people: People, sessions: sessionmaker[Session]
) -> None:
    people.with_password("ann", PASSWORD)
    note_failures(sessions, attempts.FAILURES_OF_A_NAME_FROM_AN_ADDRESS - 1, "ann", "testclient")
    browser = people.browser()
    assert browser.sign_in("ann", "wrong").status_code == 401
    refused = browser.sign_in("ann", PASSWORD)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_attempts")
    wait = refused.json()["retry_after_seconds"]
    assert refused.headers["Retry-After"] == str(wait)
    assert 0 < wait <= attempts.WINDOW.total_seconds()
    assert "Try again in 15 minutes" in refused.json()["detail"]
    with transaction(sessions) as session:
        age = func.clock_timestamp() - attempts.WINDOW
        session.execute(update(SignInAttempt).values(created_at=age))
    assert browser.sign_in("ann", PASSWORD).status_code == 200


def test_nobody_locks_a_person_out_from_elsewhere(people: People, sessions: sessionmaker[Session]) -> None:
    people.with_password("ann", PASSWORD)
    guesser = people.browser("203.0.113.9")
    codes = [guesser.sign_in("ann", "a guess").status_code for _ in range(12)]
    assert codes == [401] * 10 + [429] * 2
    assert people.browser().sign_in("ann", PASSWORD).status_code == 200
    assert people.browser("198.51.100.7").sign_in("ann", PASSWORD).status_code == 200


def test_a_name_that_is_guessed_from_many_addresses_waits_but_where_its_person_has_signed_in(
    people: People, sessions: sessionmaker[Session]
) -> None:
    people.with_password("ann", PASSWORD)
    for number in range(attempts.FAILURES_OF_A_NAME):
        note_failures(sessions, 1, "ann", f"203.0.113.{number}")
    elsewhere = people.browser("198.51.100.7")
    refused = elsewhere.sign_in("ann", PASSWORD)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_attempts")
    assert refused.json()["retry_after_seconds"] > attempts.WINDOW.total_seconds()
    assert people.browser().sign_in("ann", PASSWORD).status_code == 200, "a known address"
    with transaction(sessions) as session:
        session.execute(update(SignInAttempt).values(created_at=func.clock_timestamp() - attempts.NAME_WINDOW))
    assert elsewhere.sign_in("ann", PASSWORD).status_code == 200


def test_too_many_failures_from_an_address_stop_every_name_from_there(
    people: People, sessions: sessionmaker[Session]
) -> None:
    people.with_password("ann", PASSWORD)
    note_failures(sessions, attempts.FAILURES_FROM_AN_ADDRESS, "others", "testclient")
    assert people.browser().sign_in("ann", PASSWORD).json()["code"] == "too_many_attempts"
    assert people.browser().sign_in("nobody", PASSWORD).json()["code"] == "too_many_attempts"


def test_the_right_password_does_not_count_and_forgives_nothing_of_other_addresses(
    people: People, sessions: sessionmaker[Session]
) -> None:
    people.with_password("ann", PASSWORD)
    note_failures(sessions, 3, "ann", "203.0.113.9")
    browser = people.browser()
    browser.sign_in("ann", "wrong")
    assert browser.sign_in("ann", PASSWORD).status_code == 200
    with sessions() as session:
        assert list(session.scalars(select(SignInAttempt.address))) == ["203.0.113.9"] * 3


def test_guesses_that_arrive_together_are_counted_one_by_one(people: People, sessions: sessionmaker[Session]) -> None:
    note_failures(sessions, attempts.FAILURES_OF_A_NAME_FROM_AN_ADDRESS - 2, "ann", "testclient")
    browser = people.browser()
    with ThreadPoolExecutor(6) as pool:
        codes = [answer.status_code for answer in pool.map(lambda _: browser.sign_in("ann", "guess"), range(6))]
    assert sorted(codes) == [401, 401, 429, 429, 429, 429]


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        (None, "unknown"),
    ],
)
def test_an_ipv6_network_counts_as_one_address(host: str | None, counted: str) -> None:
    assert attempts.counted_address(host) == counted


def test_a_new_password_needs_the_present_one_and_ten_characters(people: People) -> None:
    browser = people.with_password("ann", PASSWORD)

    def change(**body: str) -> tuple[int, str]:
        answer = browser.send("PUT", f"{SESSION}/password", body)
        return answer.status_code, answer.json().get("code", "")

    assert change(new="another password") == (403, "wrong_password")
    assert change(current="wrong", new="another password") == (403, "wrong_password")
    assert change(current=PASSWORD, new="too short") == (422, "invalid_request")
    assert people.browser().sign_in("ann", PASSWORD).status_code == 200
    assert change(current=PASSWORD, new="another password") == (200, "")
    assert people.browser().sign_in("ann", PASSWORD).status_code == 401
    assert people.browser().sign_in("ann", "another password").status_code == 200


def test_guessing_the_present_password_has_to_wait_too(people: People, sessions: sessionmaker[Session]) -> None:
    browser = people.with_password("ann", PASSWORD)
    note_failures(sessions, attempts.FAILURES_OF_A_NAME, "ann", "203.0.113.9")
    guess, right = ({"current": current, "new": "another password"} for current in ("a guess", PASSWORD))
    codes = [browser.send("PUT", f"{SESSION}/password", guess).status_code for _ in range(11)]
    assert codes == [403] * attempts.FAILURES_OF_A_NAME_FROM_AN_ADDRESS + [429]
    assert browser.send("PUT", f"{SESSION}/password", right).json()["code"] == "too_many_attempts"
    other = people.browser()
    assert other.sign_in("ann", PASSWORD).status_code == 200
    assert other.send("PUT", f"{SESSION}/password", right).status_code == 200


def test_a_new_password_ends_all_other_sessions_and_links_of_that_person_alone(
    people: People, sessions: sessionmaker[Session]
) -> None:
    browser, bystander = people.with_password("ann", PASSWORD), people.add("bob", "viewer")
    other = people.browser()
    other.sign_in("ann", PASSWORD)
    with transaction(sessions) as session:
        code, _ = service.create_sign_in_link(session, session.scalars(select(User.id).where(User.name == "ann")).one())
    browser.send("PUT", f"{SESSION}/password", {"current": PASSWORD, "new": "another password"})
    assert browser.session()["user"] == "ann"
    assert bystander.session()["user"] == "bob"
    assert other.session()["code"] == "session_ended"
    assert people.browser().client.post(f"/sign-in/{code}").json()["code"] == "link_used"


def test_signing_in_again_ends_the_browsers_earlier_session(people: People) -> None:
    people.with_password("ann", PASSWORD)
    browser, thief = people.browser(), people.browser()
    browser.sign_in("ann", PASSWORD)
    thief.client.cookies.update(dict(browser.client.cookies))
    assert thief.session()["user"] == "ann"
    browser.sign_in("ann", PASSWORD)
    assert thief.session()["code"] == "session_ended"


def test_a_token_has_no_password_to_set(client: TestClient) -> None:
    refused = client.put(f"{SESSION}/password", json={"new": "another password"})
    assert refused.json()["code"] == "no_session"


def test_the_platform_forgets_what_has_ended_while_it_runs(
    people: People, sessions: sessionmaker[Session], sweeping: Callable[[], None]
) -> None:
    ann, bob = people.add("ann", "viewer"), people.add("bob", "viewer")
    with transaction(sessions) as session:
        for name in ("ann", "bob"):
            service.create_sign_in_link(session, session.scalars(select(User.id).where(User.name == name)).one())
    note_failures(sessions, 2, "ann", "203.0.113.9")
    old = {"browser_sessions": "ann", "sign_in_links": "ann"}
    with transaction(sessions) as session:
        mine = select(User.id).where(User.name == "ann").scalar_subquery()
        past = func.now() - attempts.NAME_WINDOW
        for table in old:
            stored = User.metadata.tables[table]
            session.execute(update(stored).where(stored.c.user_id == mine).values(expires_at=past))
        first = select(SignInAttempt.id).limit(1).scalar_subquery()
        session.execute(update(SignInAttempt).where(SignInAttempt.id == first).values(created_at=past))
        seen = update(KnownAddress).where(KnownAddress.user_id == mine)
        session.execute(seen.values(seen_at=func.now() - attempts.KNOWN_FOR))
    assert ann.session()["code"] == "session_ended"
    sweeping()
    rows = people.rows()
    assert {name: len(rows[name]) for name in (*old, "sign_in_attempts", "known_addresses")} == {
        "browser_sessions": 1,
        "sign_in_links": 2,  # bob's used one, and a new one
        "sign_in_attempts": 1,
        "known_addresses": 1,
    }
    assert bob.session()["user"] == "bob"
