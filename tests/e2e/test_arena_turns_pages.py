"""Further turns of a battle in a browser that does not hear that the server has taken them."""

from __future__ import annotations

import pytest
from arena_stage import Stage, stage
from playwright.sync_api import Page, Route, expect
from sqlalchemy import select

from steerboard.arena.tables import Vote
from support.rows.arena_world import write_answers

__all__ = ["stage"]


def lose_answers(page: Page, battle: str) -> None:
    """The server takes a further question, and the browser does not hear of it."""

    def swallow(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/turns", swallow)
    page.route(f"**/battles/{battle}", lambda route: route.abort())
    page.get_by_role("textbox", name="Ask both again").fill("And milk?")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_contain_text("The server cannot be reached")


def test_a_vote_is_about_the_turns_on_the_page_whatever_the_server_has_taken(stage: Stage) -> None:
    page = stage.sit("vera", "annotator")
    unanswered = stage.ask(page, "tea?")
    lose_answers(page, unanswered)
    page.get_by_role("button", name="A is better").click()
    stage.arrived(page, unanswered)
    page.get_by_role("button", name="Next battle").click()

    answered = stage.ask(page, "coffee?")
    lose_answers(page, answered)
    write_answers(stage.sessions, answered, ("Unseen!", "Unseen."))
    page.get_by_role("button", name="B is better").click()
    expect(page.get_by_text("It covers the turns that you had seen")).to_be_visible()
    with stage.sessions() as session:
        votes = {str(vote.battle_id): vote for vote in session.scalars(select(Vote))}
    assert {battle: vote.verdict for battle, vote in votes.items()} == {unanswered: "a", answered: "b"}
    assert [side[-1]["content"] for side in votes[answered].conversations] == ["Yes to coffee?", "No to coffee?"]


@pytest.mark.parametrize("answered", [False, True])
def test_a_question_whose_answer_was_lost_is_sent_again_and_asked_once(stage: Stage, answered: bool) -> None:
    page = stage.sit("rosa", "annotator")
    battle = stage.ask(page, "tea?")
    lose_answers(page, battle)
    expect(page.get_by_role("textbox", name="Ask both again")).to_have_value("And milk?")
    if answered:
        write_answers(stage.sessions, battle, ("Milk!", "None."))
    page.unroute_all()
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("region", name="Turn")).to_have_count(2)
    if not answered:
        write_answers(stage.sessions, battle, ("Milk!", "None."))
    expect(page.get_by_role("article", name="Answer A").last.get_by_text("Milk!")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    assert stage.turns_of(battle) == 2
    page.get_by_role("button", name="Tie").click()
    stage.arrived(page, battle)
    assert stage.votes() == [(battle, "tie")]


def test_another_question_than_the_one_that_arrived_is_kept_for_later(stage: Stage) -> None:
    page = stage.sit("nora", "annotator")
    battle = stage.ask(page, "tea?")
    lose_answers(page, battle)
    page.unroute_all()
    box = page.get_by_role("textbox", name="Ask both again")
    box.fill("And sugar?")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_contain_text("Another question came first")
    expect(page.get_by_role("region", name="Turn").last).to_contain_text("And milk?")
    write_answers(stage.sessions, battle, ("Milk!", "None."))
    expect(box).to_have_value("And sugar?")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("region", name="Turn").last).to_contain_text("And sugar?")
    assert stage.turns_of(battle) == 3
