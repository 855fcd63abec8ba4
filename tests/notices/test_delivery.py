"""How deliveries are sent: signed, once at a time, again after failures, and never lost."""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from notice_world import BASE, NoticeWorld
from sqlalchemy import text, update

from steerboard.notices import delivery
from steerboard.notices.channels import DeliveryResult
from steerboard.notices.tables import NoticeRule
from steerboard.platform.database import transaction
from support.servers.other_server import Answer, OtherServer, Seen


def verified(secret: str, seen: Seen) -> bool:
    """Whether the signature fits, by the text of the Standard Webhooks specification."""
    headers = seen.headers
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + seen.body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return headers["webhook-signature"] == f"v1,{expected}"


def test_a_delivery_arrives_signed_and_once(world: NoticeWorld, other: OtherServer) -> None:
    hook = world.hook(f"{other.url}/hook?token=x", "run.succeeded")
    world.run("a")
    world.work()
    assert world.send_due() == 1
    assert world.send_due() == 0
    (seen,) = other.seen
    assert (seen.method, seen.path, seen.headers["content-type"]) == ("POST", "/hook?token=x", "application/json")
    assert verified(hook["secret"], seen)
    assert abs(int(seen.headers["webhook-timestamp"]) - time.time()) < 60
    (sent,) = world.deliveries()
    assert (sent["state"], sent["attempts"], sent["last_status"]) == ("delivered", 1, 200)
    assert sent["delivered_at"]
    assert sent["next_attempt_at"] is None
    assert (seen.headers["webhook-id"], seen.json) == (sent["id"], sent["payload"])


def test_failures_are_tried_again_later_with_the_same_id(world: NoticeWorld, other: OtherServer) -> None:
    world.hook(other.url, "run.succeeded")
    world.run("a")
    world.work()
    other.answer = lambda _: Answer(503, [b"busy\x00 now"])
    world.send_due()
    (waiting,) = world.deliveries()
    assert (waiting["state"], waiting["last_status"]) == ("pending", 503)
    assert waiting["last_error"] == "answered 503: busy now"
    assert waiting["next_attempt_at"] > waiting["created_at"]
    other.answer = lambda _: Answer(204)
    assert world.send_due() == 0
    world.let_time_pass()
    world.send_due()
    (sent,) = world.deliveries()
    assert (sent["state"], sent["attempts"], sent["last_error"]) == ("delivered", 2, None)
    assert len({seen.headers["webhook-id"] for seen in other.seen}) == 1


@pytest.mark.parametrize("status", [302, 404])
def test_after_ten_tries_a_delivery_has_failed_and_can_be_sent_again(
    world: NoticeWorld, other: OtherServer, status: int
) -> None:
    world.hook(other.url, "run.succeeded")
    world.run("a")
    world.work()
    other.answer = lambda _: Answer(status, headers={"Location": "http://127.0.0.1:1/"})
    for _ in range(12):
        world.let_time_pass()
        world.send_due()
    (failed,) = world.deliveries()
    assert (failed["state"], failed["attempts"], failed["next_attempt_at"]) == ("failed", 10, None)
    assert (failed["last_status"], failed["last_error"]) == (status, f"answered {status}")
    again = world.client.post(f"{BASE}/ci/deliveries/{failed['id']}/redeliver").json()
    assert (again["id"], again["state"]) == (failed["id"], "pending")
    other.answer = lambda _: Answer(200)
    assert world.send_due() == 1
    assert world.deliveries()[0]["state"] == "delivered"


def test_waits_grow_to_about_a_day_in_all() -> None:
    waits = [delivery.wait_seconds(tries) for tries in range(1, 10)]
    assert 8 <= waits[0] <= 12
    assert waits[:6] == sorted(waits[:6])
    assert 16 * 3600 < sum(waits) < 28 * 3600


def test_a_receiver_that_is_gone_is_told_nothing_more(world: NoticeWorld, other: OtherServer) -> None:
    world.hook(other.url)
    world.run("a")
    world.run("b")
    world.work()
    other.answer = lambda _: Answer(410)
    world.send_due()
    (hook,) = world.client.get(BASE).json()
    assert (hook["active"], hook["last_delivery"]["state"]) == (False, "failed")
    world.work()
    assert len(world.deliveries()) == 1
    failed = world.deliveries()[0]["id"]
    refused = world.client.post(f"{BASE}/ci/deliveries/{failed}/redeliver").json()
    assert refused["code"] == "notice_rule_inactive"
    audit = world.client.get("/api/v1/projects/default/audit").json()["items"]
    assert audit[0]["action"] == "notice_rule.deactivate"


def test_a_slow_receiver_holds_up_only_itself(world: NoticeWorld) -> None:
    world.hook("https://slow.example/", name="slow")
    world.hook("https://quick.example/", name="quick")
    for name in "ab":
        world.run(name)
        world.work()
    with transaction(world.sessions) as session:
        on_their_way = [delivery.claim_next(session) for _ in range(3)]
    assert [claimed.parcel.url for claimed in on_their_way if claimed] == [
        "https://slow.example/",
        "https://quick.example/",
    ]


def test_several_senders_never_send_the_same_at_once(world: NoticeWorld, other: OtherServer) -> None:
    world.hook(other.url, name="one")
    world.hook(other.url, name="two")
    for name in "abcdef":
        world.run(name)
        world.work()
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: world.send_due(), range(6)))
    world.send_due()
    ids = [seen.headers["webhook-id"] for seen in other.seen]
    assert len(ids) == len(set(ids)) == 12
    states = [each["state"] for name in ("one", "two") for each in world.deliveries(name)]
    assert states == ["delivered"] * 12


def test_no_connection_of_the_database_is_held_while_it_is_sent(world: NoticeWorld, other: OtherServer) -> None:
    world.hook(other.url)
    held: list[int] = []

    def answer(_: Seen) -> Answer:
        held.append(world.sessions.kw["bind"].pool.checkedout())
        return Answer(200)

    other.answer = answer
    world.run("a")
    world.work()
    world.send_due()
    world.client.post(f"{BASE}/ci/test")
    assert held == [0, 0]


def test_what_a_lost_sender_left_is_sent_after_its_lease(world: NoticeWorld) -> None:
    world.hook("https://ci.example/")
    world.run("a")
    world.work()
    with transaction(world.sessions) as session:
        lost = delivery.claim_next(session)
        assert delivery.claim_next(session) is None
    assert lost is not None
    world.let_time_pass("lease_expires_at")
    with transaction(world.sessions) as session:
        again = delivery.claim_next(session)
    assert again is not None
    # The first was only slow: its answer now is about an attempt that is over.
    with transaction(world.sessions) as session:
        delivery.note(session, lost, DeliveryResult(500, "late"))
    assert world.deliveries()[0]["last_error"] is None
    with transaction(world.sessions) as session:
        delivery.note(session, again, DeliveryResult(200, None))
    (sent,) = world.deliveries()
    assert (sent["state"], sent["attempts"], sent["last_error"]) == ("delivered", 2, None)


@pytest.mark.parametrize("url", ["http://127.0.0.2:9/", "http://localhost.invalid/", "http://127.0.0.1:1/"])
def test_a_receiver_that_cannot_be_reached_says_why(world: NoticeWorld, url: str) -> None:
    world.hook("https://ci.example/")
    with transaction(world.sessions) as session:
        session.execute(update(NoticeRule).values(url=url))  # as if its name led elsewhere when it was registered
    sent = world.client.post(f"{BASE}/ci/test").json()
    assert (sent["event"], sent["state"], sent["attempts"], sent["last_status"]) == ("test", "failed", 1, None)
    assert sent["last_error"]
    assert ("address_refused" in sent["last_error"]) == ("127.0.0.2" in url)


def test_the_senders_send_what_comes_and_stop(world: NoticeWorld, other: OtherServer) -> None:
    arrived = threading.Event()

    def answer(_: Seen) -> Answer:
        arrived.set()
        return Answer(200)

    other.answer = answer
    world.hook(other.url)
    senders = delivery.senders(world.sessions, world.settings, world.secrets)
    senders.start()
    world.run("a")
    world.work()
    assert arrived.wait(20)
    senders.stop(20)


def test_deliveries_are_forgotten_a_month_after(world: NoticeWorld, other: OtherServer) -> None:
    world.hook(other.url)
    world.run("a")
    world.work()
    world.send_due()
    with transaction(world.sessions) as session:
        delivery.forget_old(session)
        assert session.scalar(text("SELECT count(*) FROM notice_deliveries")) == 1
        session.execute(text("UPDATE notice_deliveries SET created_at = now() - interval '31 days'"))
        delivery.forget_old(session)
        assert session.scalar(text("SELECT count(*) FROM notice_deliveries")) == 0
