"""A figure of the report leads to its items, one by one by keys, and to each judge's call, in a browser."""

from __future__ import annotations

import re

import pytest
from page_checks import faults_of, told, unfold
from playwright.sync_api import Page, expect
from sqlalchemy import update
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.evaluation.judges.requests import Question
from steerboard.evaluation.tables import EvaluationPrompt, Response
from steerboard.platform.database import transaction
from support.rows.called_judge import called_judge
from support.rows.evaluation_rows import Evaluated
from support.rows.pipeline_models import pipeline_with_models

PROMPTS = 12
HOME = "/p/default/evaluations/talk"


@pytest.fixture
def talk(sessions: sessionmaker[Session], project: Project) -> Evaluated:
    """A judge that prefers dt to sft on every third prompt, flips on every fourth, and prefers sft on the others."""
    made = Evaluated(sessions, project, name="talk", prompts=PROMPTS, categories=("writing", "math"))
    for name in ("sft", "dt", "rwr"):
        made.entrant(name)
    with transaction(sessions) as session:
        for position in range(PROMPTS):
            prompt = f"Explain to a child, in two sentences, why number {position} comes before {position + 1}."
            session.execute(
                update(EvaluationPrompt)
                .where(EvaluationPrompt.evaluation_id == made.id, EvaluationPrompt.position == position)
                .values(messages=[{"role": "user", "content": prompt}])
            )
            for name, id_ in made.ids.items():
                text = f"{name}: we count one apple after another, and {position} apples are fewer. " * (
                    3 if name == "dt" and position % 2 else 1
                )
                session.execute(
                    update(Response)
                    .where(Response.entrant_id == id_, Response.position == position)
                    .values(turns=[text.strip()], tokens=[len(text) // 4])
                )
    sft = made.ids["sft"]

    def answer(question: Question) -> str:
        (place,) = question.places
        winner = "B" if place.a == sft and question.position % 3 == 0 else "A"
        consistent = {"A": "B", "B": "A"}[winner]
        letter = winner if question.position % 4 == 1 or place.a_first else consistent
        return f"Both count apples, but one of them is easier to follow for a child. [[{letter}]]"

    called_judge(made, "pairwise", answer, name="gpt", entrants=["sft", "dt"], prompt_price=2.0, completion_price=8.0)
    made.campaign(
        {
            "bo": {at: {"sft": 1, "dt": 2, "rwr": 3} for at in range(6)},
            "cy": {at: {"sft": 2, "dt": 1, "rwr": 2} for at in range(3)},
        },
        flags=[("bo", 0)],
        state="open",
    )
    made.rewards({"sft": [0.5] * PROMPTS, "dt": [1.0, -0.5, 0.0] * 4, "rwr": [0.0] * PROMPTS}, name="rm")
    return made


def test_losses_of_a_pair_lead_to_their_items_which_keys_walk_through(rows_page: Page, talk: Evaluated) -> None:
    page = rows_page
    page.goto(f"{HOME}?tab=report")
    source = page.get_by_role("region", name="gpt", exact=True)
    # What people prefer is the answer of the report, so theirs is open.
    expect(page.get_by_role("region", name="people", exact=True).get_by_role("table").first).to_be_visible()
    unfold(source)
    pair = source.get_by_role("region", name="sft against dt")
    report = page.request.get("/api/v1/projects/default/evaluations/talk/report").json()
    (row,) = report["judges"][0]["comparison"]["pairs"]
    losses = int(row["losses"])
    assert 2 < losses < PROMPTS
    pair.get_by_role("link", name=str(losses), exact=True).last.click()
    expect(page).to_have_url(re.compile(r"tab=items.*outcome=loss"))
    expect(page.get_by_role("status")).to_contain_text(f"{losses} items")
    items = page.get_by_role("navigation", name="Items").get_by_role("link")
    expect(items).to_have_count(losses)
    expect(items.first).to_contain_text("dt")

    shown = page.get_by_role("article")
    expect(shown).to_contain_text(f"1 of {losses}")
    expect(shown.get_by_role("region", name="Answer of sft")).to_contain_text("sft: we count one apple")
    expect(shown.get_by_role("region", name="Answer of sft")).to_contain_text("Ranks in people: bo 1, cy 2")
    expect(shown.get_by_role("region", name="Answer of dt")).to_contain_text("rm 1.00")
    expect(shown.get_by_role("list", name="What each source prefers")).to_contain_text("judge gpt: dt")
    verdicts = shown.get_by_role("region", name="Verdicts")
    expect(verdicts.get_by_text("dt wins")).to_have_count(2)
    expect(verdicts.get_by_text("one of them is easier")).to_have_count(2)
    expect(shown.get_by_role("row", name=re.compile("^bo"))).to_contain_text("odd")
    faults = faults_of(page, "items")
    assert not faults, told(faults)

    page.keyboard.press("j")
    expect(shown).to_contain_text(f"2 of {losses}")
    expect(page).to_have_url(re.compile(r"item=3"))
    expect(items.nth(1)).to_have_attribute("aria-current", "page")
    page.keyboard.press("ArrowRight")
    expect(shown).to_contain_text(f"3 of {losses}")
    page.keyboard.press("k")
    expect(shown).to_contain_text(f"2 of {losses}")
    page.reload()
    expect(shown).to_contain_text(f"2 of {losses}")


def test_items_are_filtered_and_the_filters_are_in_the_address(rows_page: Page, talk: Evaluated) -> None:
    page = rows_page
    page.goto(f"{HOME}?tab=items")
    status = page.get_by_role("status")
    expect(status).to_contain_text(f"{PROMPTS} items")

    def choose(field: str, option: str) -> None:
        page.get_by_role("combobox", name=field, exact=True).click()
        page.get_by_role("option", name=option, exact=True).click()

    choose("Entrant", "dt")
    choose("Against", "sft")
    choose("Source", "judge gpt")
    page.get_by_text(re.compile(r"^Wins \(\d+\)$")).click()
    expect(page).to_have_url(re.compile(r"a=dt&b=sft&source=judge%3Agpt&outcome=win"))
    wins = page.request.get(
        "/api/v1/projects/default/evaluations/talk/items?a=dt&b=sft&source=judge:gpt&outcome=win"
    ).json()["total"]
    expect(status).to_contain_text(f"{wins} items")
    choose("Source", "reward model rm")
    choose("Sort by", "dt wins most")
    expect(page.get_by_role("navigation", name="Items").get_by_role("link").first).to_contain_text("score 1.00 / 0.50")
    page.get_by_text(re.compile(r"^All$")).click()
    choose("Sort by", "dt loses most")
    expect(page.get_by_role("navigation", name="Items").get_by_role("link").first).to_contain_text("score −0.50 / 0.50")
    choose("Source", "judge gpt")
    page.get_by_text(re.compile(r"^Wins \(\d+\)$")).click()
    choose("Length of the answer", "dt is longer")
    expect(status).not_to_contain_text(f"{wins} items")
    choose("Category", "writing")
    expect(page.get_by_text("No items fit")).to_be_visible()
    page.get_by_role("button", name="Remove the filters").click()
    expect(status).to_contain_text(f"{PROMPTS} items")
    page.get_by_text("Sources disagree", exact=True).click()
    expect(page.get_by_role("navigation", name="Items").get_by_role("link")).not_to_have_count(PROMPTS)
    # An older link with a filter that lacks another shows what it can.
    page.goto(f"{HOME}?tab=items&outcome=loss&b=sft&length=longer")
    expect(status).to_contain_text(f"{PROMPTS} items")
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("navigation", name="Items").get_by_role("link").nth(2).click()
    expect(page.get_by_role("article", name="Prompt 3")).to_be_visible()
    page.get_by_role("button", name="Next item (j)").click()
    expect(page.get_by_role("article", name="Prompt 4")).to_be_visible()
    page.get_by_role("button", name="All items").click()
    expect(page.get_by_role("navigation", name="Items").get_by_role("link")).to_have_count(PROMPTS)


def test_a_verdict_leads_to_its_call(rows_page: Page, talk: Evaluated) -> None:
    page = rows_page
    page.goto(f"{HOME}?tab=items&a=sft&b=dt&item=2")
    page.get_by_role("region", name="Verdicts").get_by_role("button", name="Trace").first.click()
    trace = page.get_by_role("dialog")
    expect(trace).to_contain_text("420 in, 35 out")
    expect(trace).to_contain_text("1.3 s")
    expect(trace).to_contain_text("attempt 2")
    expect(trace.get_by_role("region", name="What was sent")).to_contain_text("why number 2 comes before 3")
    expect(trace.get_by_role("region", name="What it answered")).to_contain_text("[[")
    faults = faults_of(page, "items-trace")
    assert not faults, told(faults)
    page.keyboard.press("Escape")
    expect(trace).to_have_count(0)


def test_all_models_of_a_pipeline_enter_by_one_choice(rows_page: Page, talk: Evaluated) -> None:
    roles = {"sft": "sft", "reward": "reward", "mle": "policy", "dt": "policy"}
    pipeline_with_models(talk, "offline-1", roles, again="offline-2")
    page = rows_page
    page.goto("/p/default/evaluations/new")

    def add(pipeline: str) -> None:
        page.get_by_role("button", name="All models of a pipeline").click()
        page.get_by_role("combobox", name="Pipeline").click()
        page.get_by_role("option", name=re.compile(f"^{pipeline} ")).click()

    add("offline-2")
    entrants = page.get_by_role("group", name=re.compile("^Entrant "))
    expect(entrants).to_have_count(3)
    for place, name in enumerate(("sft", "mle", "dt")):
        expect(entrants.nth(place)).to_have_accessible_name(f"Entrant offline-1.{name}")
    add("offline-1")
    expect(entrants).to_have_count(3)
    faults = faults_of(page, "entrants-of-pipeline")
    assert not faults, told(faults)
    page.goto(f"{HOME}?tab=answers")
    page.get_by_role("button", name="Add an entrant").click()
    add("offline-1")
    expect(page.get_by_role("dialog").get_by_role("status")).to_have_text(f"{3 * PROMPTS} answers will be made.")


def test_a_mean_rank_leads_to_the_items_that_people_ranked(rows_page: Page, talk: Evaluated) -> None:
    page = rows_page
    page.goto(f"{HOME}?tab=report")
    ranks = page.get_by_role("region", name="Ranks", exact=True)
    unfold(ranks)
    # People come first; the last of their three rows is rwr's.
    ranks.get_by_role("link").nth(2).click()
    expect(page).to_have_url(re.compile(r"tab=items.*a=rwr.*source=human%3Apeople"))
    expect(page.get_by_role("status")).to_contain_text("6 items")


def test_answers_have_their_markdown_until_the_reader_wants_them_raw(
    rows_page: Page, sessions: sessionmaker[Session], talk: Evaluated
) -> None:
    text = (
        "**Count** them:\n\n```py\nfor apple in apples:\n    print(apple)\n```\n\n<b>not HTML</b>\n\n"
        "# Then\n\n- one, [as here](https://x.org/)\n  and so on\n  1. two\n- [x] done\n\n> quoted\n> so\n\n"
        "| n | apples |\n| --- | ---: |\n| 1 | `3` |\n\n![A basket](https://x.org/basket.png)"
    )
    with transaction(sessions) as session:
        session.execute(
            update(Response).where(Response.entrant_id == talk.ids["dt"], Response.position == 0).values(turns=[text])
        )
    page = rows_page
    page.goto(f"{HOME}?tab=items&item=0")
    answer = page.get_by_role("article").get_by_role("region", name="Answer of dt")
    expect(answer.locator("strong")).to_have_text("Count")
    expect(answer.locator("pre")).to_have_text("for apple in apples:\n    print(apple)\n")
    expect(answer).to_contain_text("<b>not HTML</b>")
    expect(answer).to_contain_text("A basket (https://x.org/basket.png)")
    expect(answer.get_by_role("table")).to_be_visible()
    faults = faults_of(page, "item-markdown")
    assert not faults, told(faults)
    page.get_by_role("button", name="Raw").click()
    expect(answer.locator("pre")).to_have_text(text)
    # The browser keeps it for every page.
    page.goto(f"{HOME}?tab=answers")
    answer = page.get_by_role("article", name="Prompt 1", exact=True).get_by_role("region", name="Answer of dt")
    expect(answer.locator("pre")).to_have_text(text)
    page.get_by_role("button", name="Rendered").click()
    expect(answer.locator("strong")).to_have_text("Count")


def test_an_answer_leads_to_its_trace_and_the_call_about_it(
    rows_page: Page, talk: Evaluated, sessions: sessionmaker[Session]
) -> None:
    page = rows_page
    given = "<|user|>\nExplain it.<|end|>\n<|assistant|>\n"
    with transaction(sessions) as session:
        session.execute(
            update(Response)
            .where(Response.entrant_id == talk.ids["dt"], Response.position == 0)
            .values(prompts=[given], prompt_tokens=[21], finished=[False])
        )
    page.goto(f"{HOME}?tab=items&a=sft&b=dt&item=0")
    page.get_by_role("button", name="Trace of dt").click()
    trace = page.get_by_role("dialog", name="Answer of dt, prompt 1")
    answer = trace.get_by_role("region", name="Answer", exact=True)
    expect(answer).to_contain_text("<|assistant|>")
    expect(answer).to_contain_text("21 tokens")
    expect(answer).to_contain_text("by the token limit")
    expect(answer).to_contain_text("not recorded")  # the time
    expect(trace.get_by_text("Reward by rm")).to_be_visible()
    faults = faults_of(page, "trace of an answer")
    trace.get_by_role("table", name="Verdicts on the answer").get_by_role("button").first.click()
    call = page.get_by_role("dialog", name="Call of gpt, prompt 1")
    expect(call.get_by_role("region", name="What was sent")).to_be_visible()
    call.get_by_role("button", name="Close").click()
    expect(trace).to_be_visible()
    trace.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Trace of sft").click()
    old = page.get_by_role("dialog", name="Answer of sft, prompt 1")
    expect(old.get_by_text("The rendered prompt was not recorded; these are the messages.")).to_be_visible()
    assert faults == {}, told(faults)
