"""Questions that a campaign's owner asks about each item, next to the task: checked, kept, counted and exported."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from ranking_world import PROJECT, Annotator, RankingWorld

QUESTIONS = [
    {"label": "Language", "kind": "one_choice", "choices": ["English", "French"], "help": "Of the prompt"},
    {"label": "Topics", "kind": "several_choices", "choices": ["code", "law", "art"], "required": False},
    {"label": "Why?", "kind": "text", "required": False},
]


def send(person: Annotator, task: Any, **said: Any) -> Any:
    body = {"seconds": 2.0, "submission": f"key-{uuid.uuid4()}", "ranks": [1, 2, 3], **said}
    return person.send("POST", f"/tasks/{task['id']}/submit", body)


def refused(person: Annotator, task: Any, **replies: Any) -> str:
    answer = send(person, task, replies=replies)
    assert answer.status_code == 422, answer.text
    return str(answer.json()["code"])


def submissions(world: RankingWorld, campaign: Any) -> list[Any]:
    return list(world.owner.get(world.path(campaign, "/rankings")).json()["items"])


@pytest.fixture
def campaign(world: RankingWorld) -> Any:
    world.evaluation(prompts=3)
    return world.campaign(questions=QUESTIONS, overlap=2)


def test_tasks_have_the_questions_and_submissions_keep_the_replies(world: RankingWorld, campaign: Any) -> None:
    ann = world.annotator("ann")
    task = ann.first(campaign)
    assert [question["label"] for question in task["questions"]] == ["Language", "Topics", "Why?"]
    replies = {"Why?": " It is so. ", "Topics": ["art", "code"], "Language": "English"}
    assert send(ann, task, replies=replies).status_code == 200
    (kept,) = submissions(world, campaign)
    assert kept["replies"] == {"Language": "English", "Topics": ["code", "art"], "Why?": "It is so."}


def test_what_the_campaign_does_not_ask_is_refused(world: RankingWorld, campaign: Any) -> None:
    ann = world.annotator("ann")
    task = ann.first(campaign)
    assert refused(ann, task) == "bad_replies"  # the language is required
    assert refused(ann, task, Language="") == "bad_replies"
    assert refused(ann, task, Language="German") == "bad_replies"
    assert refused(ann, task, Language=["English"]) == "bad_replies"
    assert refused(ann, task, Language="English", Topics="code") == "bad_replies"
    assert refused(ann, task, Language="English", Colour="red") == "bad_replies"
    assert send(ann, task, replies={"Language": "English"}).status_code == 200


def test_a_draft_and_an_undone_submission_keep_replies(world: RankingWorld, campaign: Any) -> None:
    ann = world.annotator("ann")
    task = ann.first(campaign)
    path = f"/tasks/{task['id']}"
    assert ann.send("PUT", f"{path}/draft", {"replies": {"Language": "French"}}).status_code == 200
    assert ann.send("PUT", f"{path}/draft", {"replies": {"Colour": "red"}}).status_code == 422
    assert ann.first(campaign)["draft"]["replies"] == {"Language": "French"}
    assert send(ann, task, replies={"Language": "French"}).status_code == 200
    assert ann.send("POST", f"{path}/undo").json()["draft"]["replies"] == {"Language": "French"}


@pytest.mark.parametrize(
    "wrong",
    [
        [{"label": "Q", "kind": "one_choice", "choices": ["only"]}],
        [{"label": "Q", "kind": "one_choice", "choices": ["a", "A"]}],
        [{"label": "Q", "kind": "text", "choices": ["a", "b"]}],
        [{"label": "Q", "kind": "text"}, {"label": "q", "kind": "text"}],
        [{"label": "Q", "kind": "stars"}],
        [{"label": f"Q{n}", "kind": "text"} for n in range(11)],
    ],
)
def test_questions_that_cannot_be_asked_are_refused(world: RankingWorld, wrong: list[Any]) -> None:
    evaluation = world.evaluation()
    answer = world.owner.post(f"{PROJECT}/evaluations/{evaluation}/campaigns", json={"questions": wrong})
    assert answer.status_code == 422


def test_names_of_entrants_in_questions_are_warned_of(world: RankingWorld) -> None:
    world.evaluation()
    question = {"label": "Better than walrus-sft?", "kind": "one_choice", "choices": ["yes", "no"]}
    warnings = world.owner.get(world.path(world.campaign(questions=[question]))).json()["warnings"]
    assert warnings == ["annotators read the name of entrant 'walrus-sft' in the campaign's questions"]


def test_replies_are_counted_and_a_reviewers_decision_counts_instead(world: RankingWorld, campaign: Any) -> None:
    said = {
        "ann": [("English", ["code"]), ("English", ["code", "law"]), ("French", [])],
        "ben": [("English", ["code"]), ("French", ["code"]), ("French", ["art"])],
    }
    for name, replies in said.items():
        person = world.annotator(name)
        for task in person.next(campaign, 3)["items"]:
            language, topics = replies[int(task["prompt"]["messages"][-1]["content"].removesuffix("?")[-1])]
            send(person, task, ranks=[1, 1, 1], replies={"Language": language, "Topics": topics})
    language, topics, why = world.owner.get(world.path(campaign, "/quality")).json()["questions"]
    assert language["choices"] == [{"choice": "English", "replies": 3}, {"choice": "French", "replies": 3}]
    assert (language["replies"], language["shared_items"]) == (6, 3)
    assert language["agreement"] == pytest.approx(2 / 3)
    # One of three items differs: 1/3 observed, 3/5 expected with three replies of each.
    assert language["alpha"] == pytest.approx(1 - (1 / 3) / (3 / 5))
    assert [choice["replies"] for choice in topics["choices"]] == [4, 1, 1]
    assert (topics["agreement"], topics["shared_items"], topics["alpha"]) == (pytest.approx(0.75), 2, None)
    assert (why["replies"], why["choices"], why["agreement"]) == (0, [], None)

    rita = world.annotator("rita", role="reviewer")
    review = rita.send("GET", f"/{campaign['id']}/review").json()
    # Everyone ranks alike: only the choices of the second prompt differ.
    (item,) = review["items"]
    assert [opinion["replies"]["Language"] for opinion in item["annotators"]] == ["English", "French"]
    decision = {"ranks": [1, 1, 1], "replies": {"Language": "English"}}
    assert rita.send("PUT", f"/{campaign['id']}/decisions/{item['id']}", decision).status_code == 204
    language = world.owner.get(world.path(campaign, "/quality")).json()["questions"][0]
    assert [choice["replies"] for choice in language["choices"]] == [3, 2]


def test_the_file_has_every_submission_by_prompt(world: RankingWorld, campaign: Any) -> None:
    ann = world.annotator("ann")
    for task in ann.next(campaign, 3)["items"]:
        send(ann, task, replies={"Language": "English", "Why?": "so"})
    answer = world.owner.get(world.path(campaign, "/rankings/export"))
    rows = [json.loads(line) for line in answer.text.splitlines()]
    assert [row["position"] for row in rows] == [0, 1, 2]
    assert all(row["replies"] == {"Language": "English", "Why?": "so"} for row in rows)
    assert ".rankings.jsonl" in answer.headers["content-disposition"]
