"""Nothing that an annotator's browser gets distinguishes the entrants."""

from __future__ import annotations

import re
import uuid
from collections import Counter
from typing import Any

from ranking_world import NAMES, Annotator, RankingWorld
from scipy import stats
from sqlalchemy import select

from steerboard.evaluation.ranking import queue
from steerboard.evaluation.ranking.tables import Campaign, RankingItem
from steerboard.evaluation.tables import Entrant
from steerboard.platform.database import new_id

PROMPTS, ANNOTATORS = 20, 3


def secrets_of(world: RankingWorld) -> set[str]:
    """Names, parts of names and ids of everything that could tell."""
    with world.sessions() as session:
        entrants = session.scalars(select(Entrant)).all()
        told = {"quokka", "q17"}
        for entrant in entrants:
            told |= {entrant.name, str(entrant.id), entrant.id.hex, str(entrant.evaluation_id), "import"}
        told |= {part for name in NAMES for part in name.split("-")}
        told |= {str(id_) for id_ in session.scalars(select(RankingItem.id))}
        told |= set(session.scalars(select(Campaign.salt)))
        return {secret.lower() for secret in told}


def test_no_answer_of_the_ranking_api_tells_entrants_apart(world: RankingWorld) -> None:
    world.evaluation(prompts=PROMPTS, names=NAMES)
    campaign = world.campaign(overlap=ANNOTATORS, instructions="Rank by helpfulness.")
    known = dict(zip(campaign["entrants"], (1, 2, 3, 4, 5), strict=True))
    world.owner.put(world.path(campaign, "/gold/7"), json={"ranks": known})
    seen: dict[uuid.UUID, list[str]] = {}
    people = [world.annotator(name) for name in ("ann", "bob", "eve")]
    for person in people:
        person.send("GET", "")
        while items := person.next(campaign, ahead=3)["items"]:
            for task in items:
                asked = {"id", "task_type", "prompt", "answers", "criteria", "questions", "span_labels", "suggestion"}
                assert set(task) == {*asked, "draft", "locked_until"}
                assert [answer["key"] for answer in task["answers"]] == list("ABCDE")
                assert all(set(answer) == {"key", "turns"} for answer in task["answers"])
                seen[uuid.UUID(task["id"])] = [answer["turns"][0].split()[2] for answer in task["answers"]]
            assert person.submit(items[0], [1, 2, 3, 4, 5], key="the-same-key").status_code == 200
        _meet_every_refusal(person, task)
    said = "\n".join(text for person in people for text in person.said).lower()
    assert "what is 17?" in said
    assert [secret for secret in secrets_of(world) if secret in said] == []
    assert len(seen) == PROMPTS * ANNOTATORS
    places = Counter((entrant, place) for shown in seen.values() for place, entrant in enumerate(shown))
    _assert_uniform(places)
    # Random ids (version 4) sort in no order of making.
    assert all(id_.version == 4 for id_ in seen)


def _meet_every_refusal(person: Annotator, task: Any) -> None:
    person.submit(task)
    person.draft(task, ranks={"A": 1})
    person.undo(task)
    person.submit(task, [1, 2])
    person.submit(task, [1, 2, 3, 4, 5, 6])
    person.draft(task, ranks={"H": 1})
    person.send("GET", "/mine?limit=200")
    person.skip(task)
    person.submit({"id": uuid.uuid4(), "answers": []}, [1, 2])
    person.send("POST", f"/{uuid.uuid4()}/next", {"ahead": 9})
    person.send("POST", f"/{uuid.uuid4()}/next", {"ahead": 1})
    person.undo(task)
    person.submit(task)
    person.send("GET", "")


def _assert_uniform(places: Counter[tuple[str, int]]) -> None:
    """Each entrant is at each place equally often: chi-square over entrants x places."""
    entrants = sorted({entrant for entrant, _ in places})
    counts = [[places[entrant, place] for place in range(len(entrants))] for entrant in entrants]
    assert stats.chi2_contingency(counts).pvalue > 1e-5


def test_the_order_of_the_screen_is_uniform_and_of_annotator_and_item_alone() -> None:
    entrants = [str(new_id()) for _ in range(4)]
    pairs = [(uuid.uuid4(), uuid.uuid4()) for _ in range(6_000)]
    shown = [queue.shuffled(entrants, "salt", *pair) for pair in pairs]
    assert shown == [queue.shuffled(entrants, "salt", *pair) for pair in pairs]
    _assert_uniform(Counter((entrant, place) for order in shown for place, entrant in enumerate(order)))
    orders = Counter(tuple(order) for order in shown)
    assert stats.chisquare(list(orders.values())).pvalue > 1e-5
    assert len(orders) == 24
    assert [queue.shuffled(entrants, "another", *pair) for pair in pairs[:50]] != shown[:50]


def test_the_keys_of_an_item_differ_between_annotators(world: RankingWorld) -> None:
    world.evaluation(prompts=10, names=NAMES)
    campaign = world.campaign(overlap=2)
    shown = []
    for name in ("ann", "bob"):
        person, mine = world.annotator(name), {}
        while items := person.next(campaign)["items"]:
            mine[items[0]["prompt"]["messages"][0]["content"]] = [answer["turns"] for answer in items[0]["answers"]]
            person.submit(items[0])
        shown.append(mine)
    same = sum(shown[0][prompt] == shown[1][prompt] for prompt in shown[0])
    assert same < 4


def test_a_campaign_warns_when_its_own_words_name_an_entrant(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    quiet = world.campaign(instructions="Which answer helps more?")
    assert (quiet["name"], quiet["warnings"]) == ("ranking-1", [])
    loud = world.campaign(name="Zebra-Raw.test", instructions="Is heron-dt better than walrus?")
    assert [re.findall(r"'([^']+)'", warning) for warning in loud["warnings"]] == [["zebra-raw"], ["heron-dt"]]
