"""Slack and e-mail: what people read, by a real SMTP server and a receiver of HTTP, at once or in digests."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest
from notice_world import ALL_EVENTS, BASE, NoticeWorld
from pydantic import SecretStr
from sqlalchemy import text

from steerboard.notices import delivery
from steerboard.platform.database import transaction
from support.servers.mail_server import MailServer, mail_server
from support.servers.other_server import Answer, OtherServer

SLACK = "https://hooks.slack.example/services/T0/B0/of-the-channel"


@pytest.fixture
def post(world: NoticeWorld) -> Iterator[MailServer]:
    """The operator has set up e-mail."""
    with mail_server() as server:
        world.settings.smtp_host, world.settings.smtp_port = "127.0.0.1", server.port
        world.settings.smtp_security, world.settings.mail_from = "none", "Steerboard <board@steerboard.example>"
        world.settings.smtp_user, world.settings.smtp_password = "board", SecretStr("hush")
        yield server


def by_mail(world: NoticeWorld, *recipients: str, **given: Any) -> Any:
    return world.rule(channel="email", recipients=list(recipients) or ["anna@example.com"], **given)


def wait_until_due(world: NoticeWorld) -> None:
    with transaction(world.sessions) as session:
        session.execute(
            text("UPDATE notice_deliveries SET next_attempt_at = clock_timestamp() WHERE state = 'pending'")
        )


def test_a_failed_run_is_written_to_people_by_e_mail(world: NoticeWorld, post: MailServer) -> None:
    made = by_mail(world, "anna@example.com", "bo@example.com", "anna@example.com")
    assert (made["secret"], made["url"], made["recipients"]) == (None, None, ["anna@example.com", "bo@example.com"])
    run = world.run("sft")
    world.work(fail="out_of_memory")
    assert world.send_due() == 1
    ((recipients, letter),) = post.letters
    assert recipients == ["anna@example.com", "bo@example.com"]
    assert letter["Subject"] == "[default] Run sft failed"
    assert "bo@example.com" not in str(letter)
    assert "it went wrong" in letter.get_content()
    assert f"https://steerboard.example/p/default/runs/{run}" in letter.get_content()
    assert post.logins == [("board", "hush")]
    (sent,) = world.deliveries()
    assert (sent["state"], sent["last_status"], sent["last_error"]) == ("delivered", 250, None)
    assert sent["id"] in letter["Message-ID"]


def test_a_letter_that_the_server_does_not_take_is_sent_again(world: NoticeWorld, post: MailServer) -> None:
    by_mail(world)
    post.answer = "451 later"
    world.run("sft")
    world.work()
    world.send_due()
    (sent,) = world.deliveries()
    assert (sent["state"], sent["last_status"], sent["last_error"]) == ("pending", 451, "answered 451: later")
    post.answer = "250 taken"
    world.let_time_pass()
    world.send_due()
    assert len(post.letters) == 1


def test_a_recipient_that_is_refused_is_named_and_the_others_get_the_letter_once(
    world: NoticeWorld, post: MailServer
) -> None:
    by_mail(world, "anna@example.com", "gone@example.com")
    post.refuses = ("gone@example.com",)
    world.run("sft")
    world.work()
    world.send_due()
    (sent,) = world.deliveries()
    assert (sent["state"], sent["last_error"]) == ("delivered", "refused: gone@example.com (550 no such mailbox)")
    assert [recipients for recipients, _ in post.letters] == [["anna@example.com"]]


def test_a_server_that_does_not_listen_is_a_failure_with_its_reason(world: NoticeWorld, post: MailServer) -> None:
    by_mail(world)
    world.settings.smtp_port = 1
    tested = world.client.post(f"{BASE}/ci/test").json()
    assert (tested["state"], tested["last_status"]) == ("failed", None)
    assert "refused" in tested["last_error"]


def test_a_reason_of_several_lines_adds_no_header(world: NoticeWorld, post: MailServer) -> None:
    by_mail(world)
    world.run("sft")
    world.work()
    with transaction(world.sessions) as session:
        hostile = '"sft\\r\\nBcc: eve@example.com"'
        session.execute(
            text(f"UPDATE notice_deliveries SET payload = jsonb_set(payload, '{{data,name}}', '{hostile}')")
        )
    world.send_due()
    ((recipients, letter),) = post.letters
    assert (recipients, letter["Bcc"]) == (["anna@example.com"], None)


def test_slack_gets_a_text_with_a_link_and_its_address_is_sealed(world: NoticeWorld, other: OtherServer) -> None:
    made = world.rule(channel="slack", url=f"{other.url}/services/of-the-channel")
    assert made["url"].endswith("/…")
    run = world.run("sft")
    world.work(fail="bad_input")
    world.send_due()
    (seen,) = other.seen
    assert seen.path == "/services/of-the-channel"
    assert f"*<https://steerboard.example/p/default/runs/{run}|Run sft failed>*" in seen.json["text"]
    with world.sessions() as session:
        for table in ("notice_rules", "notice_deliveries", "audit_log", "idempotency_keys"):
            assert "of-the-channel" not in str(session.execute(text(f"SELECT * FROM {table}")).all())
    other.answer = lambda _: Answer(404, [b"no_service"])
    assert world.client.post(f"{BASE}/ci/test").json()["last_error"] == "answered 404: no_service"


def test_a_digest_is_one_message_with_all_that_happened(world: NoticeWorld, post: MailServer) -> None:
    by_mail(world, schedule={"digest": "hourly"})
    for name in "abc":
        world.run(name)
    world.work()
    world.work(fail="bad_input")
    world.work()
    assert world.send_due() == 0
    due = {dt.datetime.fromisoformat(each["next_attempt_at"]) for each in world.deliveries()}
    assert {(at.minute, at.second) for at in due} == {(0, 0)}
    wait_until_due(world)
    assert world.send_due() == 1
    ((_, letter),) = post.letters
    assert letter["Subject"] == "[default] 3 notices, 1 of failures"
    assert [letter.get_content().count(f"Run {name} ") for name in "abc"] == [1, 1, 1]
    assert [(each["state"], each["attempts"]) for each in world.deliveries()] == [("delivered", 1)] * 3
    assert world.send_due() == 0


def test_a_digest_whose_sender_was_killed_is_sent_by_another(world: NoticeWorld, post: MailServer) -> None:
    by_mail(world, schedule={"digest": "hourly"})
    for name in "ab":
        world.run(name)
        world.work()
    wait_until_due(world)
    with transaction(world.sessions) as session:
        assert delivery.claim_next(session) is not None
    assert world.send_due() == 0  # the lease of the killed one still holds
    world.let_time_pass("lease_expires_at")
    assert world.send_due() == 1
    assert [each["state"] for each in world.deliveries()] == ["delivered"] * 2


def test_quiet_hours_hold_notices_back_until_they_are_changed(world: NoticeWorld, post: MailServer) -> None:
    now = dt.datetime.now(dt.UTC)
    quiet = {
        "quiet_from": f"{now - dt.timedelta(hours=1):%H:%M}",
        "quiet_until": f"{now + dt.timedelta(hours=2):%H:%M}",
    }
    by_mail(world, schedule=quiet)
    world.run("sft")
    world.work()
    assert world.send_due() == 0
    (held,) = world.deliveries()
    assert f"{dt.datetime.fromisoformat(held['next_attempt_at']):%H:%M}" == quiet["quiet_until"]
    world.client.patch(f"{BASE}/ci", json={"schedule": {}})
    assert world.send_due() == 1
    assert len(post.letters) == 1


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"channel": "email", "recipients": ["anna@example.com"]}, "mail_not_set_up"),
        ({"channel": "email"}, "notice_rule_mismatch"),
        ({"channel": "email", "url": SLACK, "recipients": ["anna@example.com"]}, "notice_rule_mismatch"),
        ({"channel": "slack"}, "notice_rule_mismatch"),
        ({"channel": "slack", "url": SLACK, "recipients": ["anna@example.com"]}, "notice_rule_mismatch"),
        ({"channel": "slack", "url": "http://127.0.0.2:9/"}, "address_refused"),
        ({"url": SLACK, "schedule": {"digest": "daily"}}, "notice_rule_mismatch"),
        ({"channel": "slack", "url": SLACK, "schedule": {"time_zone": "Mars/Olympus"}}, "invalid_request"),
        ({"channel": "slack", "url": SLACK, "schedule": {"quiet_from": "22:00"}}, "invalid_request"),
        ({"channel": "email", "recipients": ["anna@example.com\nBcc: eve@example.com"]}, "invalid_request"),
        ({"channel": "email", "recipients": ["anna"]}, "invalid_request"),
    ],
)
def test_what_does_not_fit_the_channel_is_refused(world: NoticeWorld, given: dict[str, Any], code: str) -> None:
    answer = world.client.post(BASE, json={"name": "two", "events": ALL_EVENTS, **given})
    assert answer.json()["code"] == code, answer.text
    assert world.client.get(BASE).json() == []
