from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from steerboard.arena import rates
from steerboard.arena.tables import Vote
from steerboard.datasets.tables import Dataset, SampleRow
from steerboard.platform.database import transaction
from steerboard.playground.tables import PlaygroundAnswer
from steerboard.registry.tables import Endpoint
from steerboard.runs.results.lineage import _opinions
from steerboard_figures.judgment_figures import Options, figures
from support.rows.arena_world import NAMES, PROJECT, ArenaWorld, write_answers


def stored(world: ArenaWorld) -> int:
    with world.sessions() as session:
        return session.scalar(select(func.count()).select_from(Vote)) or 0


def test_two_entrants_answer_several_turns_and_are_named_after_the_vote(world: ArenaWorld) -> None:
    world.arena()
    anna = world.person("anna")
    battle = anna.answered()
    anna.again(battle, "And coffee?")
    write_answers(world.sessions, battle["id"], ("Another drink.", "No!"))
    shown = anna.get(f"battles/{battle['id']}")
    assert [(turn["prompt"], *(side["text"] for side in turn["sides"])) for turn in shown["turns"]] == [
        ("What is tea?", "A drink.", "No."),
        ("And coffee?", "Another drink.", "No!"),
    ]
    assert shown["vote"] is None
    voted = anna.vote(battle, "a")
    assert voted["vote"]["names"] == world.sides(battle)
    assert voted["vote"]["counts"] is True


def test_each_entrant_goes_on_from_its_own_answers(world: ArenaWorld) -> None:
    world.arena()
    anna = world.person("anna")
    battle = anna.answered()
    anna.again(battle, "Sure?")
    with world.sessions() as session:
        newest = select(PlaygroundAnswer).order_by(PlaygroundAnswer.comparison_id.desc(), PlaygroundAnswer.place)
        prompts = [answer.prompt for answer in session.scalars(newest.limit(2))]
    assert [[message["content"] for message in prompt or []] for prompt in prompts] == [
        ["What is tea?", "A drink.", "Sure?"],
        ["What is tea?", "No.", "Sure?"],
    ]


def test_the_same_vote_again_changes_nothing_and_another_one_is_refused(world: ArenaWorld) -> None:
    world.arena()
    anna = world.person("anna")
    battle = anna.answered()
    first = anna.vote(battle, "b", submission="s1")
    assert anna.vote(battle, "b", submission="s1") == first
    assert anna.vote(battle, "b", submission="s2") == first
    assert anna.vote(battle, "a", submission="s1", status=409)["code"] == "already_voted"
    assert anna.again(battle, "And?", status=409)["code"] == "already_voted"
    assert stored(world) == 1


def test_votes_that_arrive_together_are_one(world: ArenaWorld) -> None:
    world.arena()
    anna = world.person("anna")
    battle = anna.answered()
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(anna.vote(battle, "tie"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4
    assert stored(world) == 1


def test_there_is_no_vote_and_no_next_turn_before_both_answers(world: ArenaWorld) -> None:
    world.arena()
    anna = world.person("anna")
    battle = anna.begin()
    assert anna.vote(battle, "a", status=409)["code"] == "answers_missing"
    assert anna.again(battle, "And?", status=409)["code"] == "answers_missing"
    write_answers(world.sessions, battle["id"], ("", "x"), state="failed")
    assert anna.vote(battle, "b", status=409)["code"] == "answer_failed"
    assert anna.again(battle, "And?", status=409)["code"] == "answer_failed"
    assert stored(world) == 0


def test_the_same_prompt_for_the_same_pair_counts_once_a_person(world: ArenaWorld) -> None:
    world.arena()
    anna, ben = world.person("anna"), world.person("ben")
    counts = [anna.vote(anna.answered(prompt), "tie")["vote"]["counts"] for prompt in ("Tea?", " tea? ", "Coffee?")]
    assert counts == [True, False, True]
    assert ben.vote(ben.answered("Tea?"), "tie")["vote"]["counts"] is True
    assert world.get("arenas/quokka")["votes"] == 3
    assert world.get("arenas/quokka")["repeats"] == 1
    assert world.get("arenas/quokka/leaderboard")["n"] == 3


def test_a_closed_arena_begins_nothing_and_takes_the_votes_that_are_on_their_way(world: ArenaWorld) -> None:
    world.arena()
    anna = world.person("anna")
    battle = anna.answered()
    for _ in range(2):
        assert world.owner.post(f"{PROJECT}/arenas/quokka/close").json()["state"] == "closed"
    assert anna.begin(status=409)["code"] == "arena_closed"
    assert anna.vote(battle, "a")["vote"]["verdict"] == "a"


def test_who_asks_or_votes_too_fast_hears_how_long_to_wait(world: ArenaWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "TURNS", 2)
    monkeypatch.setattr(rates, "VOTES", 1)
    world.arena()
    anna, ben = world.person("anna"), world.person("ben")
    battles = [anna.answered(prompt) for prompt in ("One?", "Two?")]
    refused = anna.client.post(f"{PROJECT}/arenas/quokka/battles", json={"prompt": "Three?"})
    assert (refused.status_code, refused.json()["code"]) == (429, "too_fast")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert anna.again(battles[0], "And?", status=429)["code"] == "too_fast"
    ben.begin()
    first = anna.vote(battles[0], "a")
    assert anna.vote(battles[1], "a", status=429)["code"] == "too_fast"
    assert anna.vote(battles[0], "a") == first, "what is there already is no new vote"


def test_a_battle_that_is_sent_again_begins_once(world: ArenaWorld) -> None:
    world.arena()
    anna = world.person("anna")
    body = {"prompt": "What is tea?"}
    made = [anna.post("arenas/quokka/battles", body, 201, **{"Idempotency-Key": "k"})["id"] for _ in range(2)]
    assert made[0] == made[1]


@pytest.mark.parametrize("sides", [2, pytest.param(3, marks=pytest.mark.long)])
def test_exported_battles_give_the_figures_of_the_leaderboard(world: ArenaWorld, tmp_path: Path, sides: int) -> None:
    world.arena(names=NAMES[: sides + 1], sides=sides, categories=["drinks", "food"])
    anna = world.person("anna")
    verdicts = ("a", "b", "tie", "all_bad", "a", "b", "a", "abc"[sides - 1], "b", "tie", "a", "b")
    for number, verdict in enumerate(verdicts):
        texts = (f"# Tea\n\n- {'word ' * number}", f"**no** {'x' * (20 - number)}", "Tea!")[:sides]
        battle = anna.answered(f"Prompt {number}?", texts, category="drinks" if number % 3 else "food")
        anna.vote(battle, verdict)
    board = world.get("arenas/quokka/leaderboard")
    exported = world.owner.get(f"{PROJECT}/arenas/quokka/export")
    assert "quokka.battles.jsonl" in exported.headers["Content-Disposition"]
    path = tmp_path / "battles.jsonl"
    lines = exported.content.splitlines(keepends=True)
    # With three sides, a vote for one is two pairs and a tie three.
    assert len(lines) == (12 if sides == 2 else 9 * 2 + 3 * 3)
    path.write_bytes(b"".join(lines))
    computed = figures([path], "auto", Options())
    assert (computed["format"], computed["valid"], computed["n"]) == ("battles", True, 12)
    assert computed["models"] == board["models"]
    assert computed["matrix"] == board["matrix"]
    assert computed["style_controlled"]["models"] == board["style_controlled"]["models"]
    # A model that won once has no finite rating in the draws without that win, and so no interval.
    bounded = [model for model in board["models"] if model["low"] is not None]
    assert all(model["low"] < model["rating"] < model["high"] for model in bounded)
    assert {model["model"] for model in board["models"] if model["wins"] > 1} == {model["model"] for model in bounded}
    assert board["by_category"] == {"drinks": 8, "food": 4}
    assert sum(model["n"] for model in board["models"]) == 12 * sides, "a vote counts once for each of its sides"
    assert world.get("arenas/quokka/leaderboard", category="food")["n"] == 4
    assert world.get("arenas/quokka/leaderboard", category="x")["why"] == "no one has voted in the category 'x'"


def test_votes_become_preference_pairs_that_name_their_battles(world: ArenaWorld) -> None:
    world.arena()
    anna = world.person("anna")
    preferred = anna.answered("One?", ("good", "bad"))
    anna.again(preferred, "And two?")
    write_answers(world.sessions, preferred["id"], ("better", "worse"))
    anna.vote(preferred, "a")
    for prompt, verdict, texts in (
        ("Two?", "tie", ("x", "y")),
        ("Three?", "all_bad", ("x", "y")),
        ("Four?", "b", ("same", "same")),
        ("Five?", "b", ("", "something")),
    ):
        anna.vote(anna.answered(prompt, texts), verdict)
    made = world.owner.post(f"{PROJECT}/arenas/quokka/preferences", json={"split": "train"})
    assert made.status_code == 201, made.text
    assert (made.json()["name"], made.json()["rows"], made.json()["kind"]) == ("quokka-preferences-1", 1, "preferences")
    origin = made.json()["origin"]
    assert origin["type"] == "arena"
    assert origin["left_out"] == {"tie": 1, "all_bad": 1, "identical": 1, "empty": 1}
    with world.sessions() as session:
        dataset = session.scalars(select(Dataset).where(Dataset.name == "quokka-preferences-1")).one()
        row = session.scalars(select(SampleRow).where(SampleRow.dataset_id == dataset.id)).one()
    assert [message["content"] for message in row.sample["prompt"]] == ["One?", "good", "And two?"]
    assert (row.sample["chosen"], row.sample["rejected"]) == ("better", "worse")
    a, b = world.sides(preferred)
    assert row.extra is not None
    about = row.extra if isinstance(row.extra, dict) else json.loads(row.extra)
    assert (about["battle"], about["chosen_entrant"], about["rejected_entrant"]) == (preferred["id"], a, b)
    assert (about["by"], about["same_history"]) == ("anna", False)


def test_a_vote_among_four_prefers_its_side_to_each_other_one(world: ArenaWorld) -> None:
    world.arena(names=NAMES, sides=4)
    anna = world.person("anna")
    battle = anna.answered(texts=("fine", "best", "best", "poor"))
    assert len(battle["turns"][0]["sides"]) == 4
    voted = anna.vote(battle, "c")["vote"]
    assert (voted["verdict"], voted["names"], sorted(voted["names"])) == ("c", world.sides(battle), sorted(NAMES))
    anna.vote(anna.answered("Two?", ("w", "x", "y", "z")), "all_bad")
    board = world.get("arenas/quokka/leaderboard")
    # A third of a vote for C over A, and of the other vote, which is about six pairs, a tie with a sixth.
    assert board["n"] == 2
    assert board["matrix"][voted["names"][2]][voted["names"][0]] == pytest.approx(5 / 6)
    made = world.owner.post(f"{PROJECT}/arenas/quokka/preferences", json={"split": "train"}).json()
    assert (made["rows"], made["origin"]["left_out"]) == (2, {"identical": 1, "all_bad": 1})
    with world.sessions() as session:
        rows = list(session.scalars(select(SampleRow).where(SampleRow.dataset_id == made["id"])))
    assert {(row.sample["chosen"], row.sample["rejected"]) for row in rows} == {("best", "fine"), ("best", "poor")}
    about = [row.extra if isinstance(row.extra, dict) else json.loads(row.extra or "{}") for row in rows]
    assert {row["battle"] for row in about} == {battle["id"]}
    assert {row["rejected_entrant"] for row in about} == {voted["names"][0], voted["names"][3]}


def test_the_same_prompt_counts_again_for_other_entrants_and_in_another_order_does_not(world: ArenaWorld) -> None:
    world.arena(names=NAMES[:4], sides=3)
    anna = world.person("anna")
    met: set[frozenset[str]] = set()
    orders: set[tuple[str, ...]] = set()
    for _ in range(9):
        battle = anna.answered("Tea?", ("x", "y", "z"))
        order = tuple(world.sides(battle))
        orders.add(order)
        assert anna.vote(battle, "c")["vote"]["counts"] is (frozenset(order) not in met)
        met.add(frozenset(order))
    assert 1 < len(met) < len(orders)


def test_without_a_preference_there_is_no_dataset(world: ArenaWorld) -> None:
    world.arena()
    anna = world.person("anna")
    anna.vote(anna.answered(), "tie")
    refused = world.owner.post(f"{PROJECT}/arenas/quokka/preferences", json={})
    assert (refused.status_code, refused.json()["code"]) == (422, "empty_selection")


def test_what_an_arena_takes(world: ArenaWorld) -> None:
    world.arena(categories=["drinks"])
    assert world.arena(status=409)["code"] == "name_taken"
    assert world.arena("one", names=NAMES[:1], status=422)["code"] == "invalid_request"
    assert world.arena("twins", names=(NAMES[0], NAMES[0]), status=422)["code"] == "bad_entrants"
    assert world.arena("three", sides=3, status=422)["code"] == "invalid_request", "of two entrants"
    assert world.arena("five", names=NAMES, sides=5, status=422)["code"] == "invalid_request"
    assert world.get("arenas/quokka")["sides"] == 2
    named = [{"endpoint": name, "name": "same"} for name in NAMES[:2]]
    assert world.arena("named", entrants=named, status=422)["code"] == "bad_entrants"
    world.arena("heat", entrants=[{"endpoint": NAMES[0]}, {"endpoint": NAMES[0], "decoding": {"temperature": 1}}])
    assert world.get("arenas/heat")["entrants"] == [NAMES[0], f"{NAMES[0]}-2"]
    anna = world.person("anna")
    assert anna.begin(category="food", status=422)["code"] == "unknown_category"
    assert anna.vote(anna.answered(), "c", status=422)["code"] == "unknown_side"
    assert anna.begin("  ", status=422)["code"] == "invalid_request"
    assert anna.begin(arena="nowhere", status=404)["code"] == "unknown_arena"


def test_an_entrant_that_was_deleted_is_asked_no_more(world: ArenaWorld) -> None:
    world.arena(names=NAMES[:3], sides=3)
    anna = world.person("anna")
    with transaction(world.sessions) as session:
        session.delete(session.scalars(select(Endpoint).where(Endpoint.name == NAMES[1])).one())
    for number in range(6):
        assert set(world.sides(anna.begin(f"{number}?"))) == {NAMES[0], NAMES[2]}
    with transaction(world.sessions) as session:
        session.delete(session.scalars(select(Endpoint).where(Endpoint.name == NAMES[0])).one())
    assert anna.begin(status=422)["code"] == "bad_entrants"


def test_the_lineage_of_a_model_leads_over_its_pairs_to_the_arena(world: ArenaWorld) -> None:
    world.arena()
    anna = world.person("anna")
    anna.vote(anna.answered(), "a")
    made = world.owner.post(f"{PROJECT}/arenas/quokka/preferences", json={"split": "train"}).json()
    with world.sessions() as session:
        opinions = list(_opinions(session.get_one(Dataset, made["id"])))
    assert [(node.type, node.name, edge.role, str(edge.target)) for node, edge in opinions] == [
        ("arena", "quokka", "votes", made["id"])
    ]
