"""Annotators flag passages of answers; offsets count code points, and what is taken back is kept."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from ranking_world import NAMES, PROJECT, Annotator, RankingWorld
from sqlalchemy import select, update

from steerboard.evaluation.ranking.tables import RankingHistory, RankingSpan
from steerboard.evaluation.tables import Response
from steerboard.platform.database import transaction

# The first character is of two UTF-16 units and four bytes, the family of several code points.
TEXT = "𝒳 is 👩‍👩‍👧 wrong, and Zoë knows it"
WRONG = (TEXT.index("wrong"), TEXT.index("wrong") + 5)


@pytest.fixture
def campaign(world: RankingWorld) -> Any:
    world.evaluation(prompts=2, follow_ups=1)
    with transaction(world.sessions) as session:
        session.execute(update(Response).values(turns=["a first turn", TEXT]))
    return world.campaign(overlap=2)


def flag(key: str = "A", start: int = WRONG[0], end: int = WRONG[1], **more: Any) -> dict[str, Any]:
    return {"key": key, "turn": 2, "start": start, "end": end, "label": "factual error", **more}


def listed(world: RankingWorld, campaign: Any) -> list[Any]:
    answer = world.owner.get(world.path(campaign, "/spans"))
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


def test_a_flagged_passage_is_the_text_that_was_selected_whatever_its_characters(
    world: RankingWorld, campaign: Any
) -> None:
    ann = world.annotator("ann")
    task = ann.first(campaign)
    assert task["span_labels"] == ["factual error", "unsafe", "repetition"]
    spans = [flag(note=" no "), flag("B", 0, 1, label="unsafe"), flag("B", len(TEXT) - 2, len(TEXT))]
    assert ann.submit(task, spans=spans).status_code == 200
    rows = {(row["label"], row["text"]): row for row in listed(world, campaign)}
    assert set(rows) == {("factual error", "wrong"), ("unsafe", "𝒳"), ("factual error", "it")}
    wrong = rows["factual error", "wrong"]
    assert (wrong["annotator"], wrong["turn"], wrong["start"], wrong["note"]) == ("ann", 2, WRONG[0], "no")
    (exported,) = world.owner.get(world.path(campaign, "/rankings")).json()["items"]
    assert exported["shown"][0] == wrong["entrant"]
    assert {(span["entrant"], span["text"]) for span in exported["spans"]} == {
        (exported["shown"][0], "wrong"),
        (exported["shown"][1], "𝒳"),
        (exported["shown"][1], "it"),
    }
    item = world.owner.get(f"{PROJECT}/evaluations/quokka-eval/items/{wrong['position']}").json()
    (ranking,) = item["rankings"]
    assert ranking["spans"] == exported["spans"]
    by_label = {row["label"]: row for row in world.owner.get(world.path(campaign, "/quality")).json()["spans"]}
    assert list(by_label) == ["factual error", "unsafe", "repetition"]
    assert (by_label["factual error"]["spans"], by_label["factual error"]["items"]) == (2, 1)
    assert by_label["factual error"]["by_entrant"][exported["shown"][1]] == 1
    assert by_label["repetition"]["spans"] == 0


@pytest.mark.parametrize(
    ("spans", "told"),
    [
        ([flag(end=len(TEXT) + 1)], f"within the {len(TEXT)} characters"),
        ([flag(start=5, end=5)], "within the"),
        ([flag(start=9, end=5)], "within the"),
        ([flag(turn=3)], "turn 3"),
        ([flag("H")], "turn 2"),
        ([flag(label="rude")], "'rude'"),
        ([flag(), flag(note="again")], "twice"),
        ([flag(start=place, end=place + 1) for place in range(26)], "26 passages"),
    ],
)
def test_a_passage_that_does_not_fit_the_answer_is_refused(
    world: RankingWorld, campaign: Any, spans: list[Any], told: str
) -> None:
    ann = world.annotator("ann")
    task = ann.first(campaign)
    refused = ann.submit(task, spans=spans)
    assert (refused.status_code, refused.json()["code"]) == (422, "bad_spans")
    assert told in refused.json()["detail"]
    assert listed(world, campaign) == []
    assert ann.first(campaign)["id"] == task["id"]


@pytest.mark.parametrize(
    "wrong", [{"start": -1}, {"key": "Z"}, {"turn": 0}, {"label": ""}, {"note": " "}, {"text": "x"}, {"end": 2**70}]
)
def test_a_malformed_flag_is_refused_at_the_border(world: RankingWorld, campaign: Any, wrong: dict[str, Any]) -> None:
    ann = world.annotator("ann")
    task = ann.first(campaign)
    assert ann.submit(task, spans=[flag() | wrong]).status_code == 422
    assert ann.submit(task, spans=[flag(start=place) for place in range(201)]).status_code == 422
    assert ann.draft(task, spans=[flag("D")]).json()["code"] == "bad_ranks"


def test_an_undone_submission_takes_its_flags_back_into_the_draft(world: RankingWorld, campaign: Any) -> None:
    ann = world.annotator("ann")
    task = ann.first(campaign)
    assert ann.draft(task, spans=[flag()]).status_code == 200
    assert ann.first(campaign)["draft"]["spans"] == [flag(note=None)]
    assert ann.submit(task, spans=[flag(), flag("C", label="unsafe")]).status_code == 200
    again = ann.undo(task).json()
    assert sorted(span["key"] for span in again["draft"]["spans"]) == ["A", "C"]
    assert listed(world, campaign) == []
    assert ann.submit(again, spans=again["draft"]["spans"][:1]).status_code == 200
    assert len(listed(world, campaign)) == 1
    with world.sessions() as session:
        (history,) = session.scalars(select(RankingHistory)).all()
        assert len(history.was["spans"]) == 2
        assert len(session.scalars(select(RankingSpan)).all()) == 3


def test_a_flag_is_removed_after_its_submission_by_its_annotator_or_a_reviewer(
    world: RankingWorld, campaign: Any
) -> None:
    ann, bob, rita = world.annotator("ann"), world.annotator("bob"), world.annotator("rita", "reviewer")
    task = ann.first(campaign)
    ann.submit(task, spans=[flag(), flag("B"), flag("C")])
    (mine,) = ann.send("GET", "/mine").json()["items"]
    first, second, third = mine["spans"]
    assert {span["key"] for span in mine["spans"]} == set("ABC")
    other = bob.send("DELETE", f"/spans/{first['id']}")
    assert (other.status_code, other.json()["code"]) == (404, "unknown_span")
    for _ in range(2):
        assert ann.send("DELETE", f"/spans/{first['id']}").status_code == 204
    assert rita.send("DELETE", f"/spans/{second['id']}").status_code == 204
    assert [row["id"] for row in listed(world, campaign)] == [third["id"]]
    assert world.owner.get(world.path(campaign, "/quality")).json()["spans"][0]["spans"] == 1
    assert ann.send("DELETE", f"/spans/{uuid.uuid4()}").status_code == 404
    actions = world.owner.get(f"{PROJECT}/audit?action=ranking.unflag").json()["items"]
    assert [row["actor"] for row in actions] == ["user:rita", "user:ann"]


def disagree(person: Annotator, campaign: Any, ranks: list[int], spans: list[Any]) -> None:
    task = person.first(campaign)
    assert person.submit(task, ranks, spans=spans).status_code == 200


def test_a_reviewer_sees_flags_at_the_answers_of_the_own_screen_without_names(
    world: RankingWorld, campaign: Any
) -> None:
    with transaction(world.sessions) as session:
        for place, response in enumerate(session.scalars(select(Response)).all()):
            response.turns = ["a first turn", f"{place:03} {TEXT}"]
    ann, bob, rita = world.annotator("ann"), world.annotator("bob"), world.annotator("rita", "reviewer")
    task = ann.first(campaign)
    assert ann.submit(task, [1, 2, 3], spans=[flag("B", 0, 3)]).status_code == 200
    texts = {answer["turns"][1]: rank for answer, rank in zip(task["answers"], (3, 2, 1), strict=True)}
    theirs = bob.first(campaign)
    assert bob.submit(theirs, [texts[answer["turns"][1]] for answer in theirs["answers"]]).status_code == 200
    (item,) = rita.send("GET", f"/{campaign['id']}/review").json()["items"]
    (span,) = item["annotators"][0]["spans"]
    shown = next(answer for answer in item["answers"] if answer["key"] == span["key"])
    assert shown["turns"] == task["answers"][1]["turns"]
    told = "".join(text for person in (ann, bob, rita) for text in person.said).lower()
    assert [name for name in NAMES if name in told] == []


def test_the_owner_sets_the_labels_and_without_any_nothing_is_flagged(world: RankingWorld, campaign: Any) -> None:
    ann = world.annotator("ann")
    task = ann.first(campaign)
    path = world.path(campaign)
    twice = world.owner.patch(path, json={"span_labels": ["rude", "Rude"]})
    assert (twice.status_code, twice.json()["code"]) == (422, "invalid_request")
    world.campaign(span_labels=[f"label {place}" for place in range(10)], status=422)
    assert world.owner.patch(path, json={"span_labels": ["rude"]}).json()["span_labels"] == ["rude"]
    assert ann.submit(task, spans=[flag()]).json()["code"] == "bad_spans"
    assert ann.submit(task, spans=[flag(label="rude")]).status_code == 200
    world.owner.patch(path, json={"span_labels": []})
    counts = world.owner.get(world.path(campaign, "/quality")).json()["spans"]
    assert [(row["label"], row["spans"]) for row in counts] == [("rude", 1)]
    assert ann.first(campaign)["span_labels"] == []
