"""A judge without its calibration, in a real browser: its card warns, and it makes no pairs until it is chosen."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.registry.tables import Endpoint
from support.rows.evaluation_rows import Evaluated

PROMPTS = 8
WHY = "it has not been calibrated, and needs an accuracy of at least 80% on known pairs first"


@pytest.fixture
def page(rows_page: Page, sessions: sessionmaker[Session], project: Project) -> Page:
    """A page at an evaluation in which judge `sure` prefers dt, and `untested` sft."""
    made = Evaluated(sessions, project, name="weighed", prompts=PROMPTS)
    made.entrant("sft", letters=10)
    made.entrant("dt", letters=20)
    for name, value, settings in (("sure", 1.0, {}), ("untested", 0.0, {"calibration_threshold": 0.8})):
        said = [{"position": at, "a": "dt", "b": "sft", "value": value} for at in range(PROMPTS)]
        made.judge("pairwise", said, name=name, settings=settings)
    with transaction(sessions) as session:
        elsewhere = Endpoint(project_id=project.id, name="gpt", base_url="http://127.0.0.1:9/v1", model="gpt")
        session.add(elsewhere)
        session.flush()
        endpoint = elsewhere.id
    made.judge("pairwise", [], name="asked", endpoint_id=endpoint, imported=None)
    return rows_page


def test_a_card_warns_of_a_judge_that_is_not_calibrated(page: Page) -> None:
    page.goto("/p/default/evaluations/weighed?tab=judges")
    card = page.get_by_role("region", name="Judge untested")
    expect(card.get_by_role("alert")).to_contain_text(f"The reason: {WHY}.")
    expect(card.get_by_text("Too many unusable verdicts")).to_have_count(0)
    expect(page.get_by_role("region", name="Judge sure").get_by_role("alert")).to_have_count(0)


def test_a_judge_that_is_not_calibrated_makes_pairs_only_where_someone_chooses_it(page: Page) -> None:
    page.goto("/p/default/evaluations/weighed?tab=preferences")
    untested = page.get_by_role("checkbox", name="judge untested")
    expect(page.get_by_role("checkbox", name="judge sure")).to_be_checked()
    expect(untested).not_to_be_checked()
    expect(page.get_by_text(f"{PROMPTS} verdicts; not valid: {WHY}")).to_be_visible()
    counted = page.get_by_role("status").filter(has_text=f"from {PROMPTS} prompts")
    expect(counted).to_contain_text(f"{PROMPTS} pairs")
    expect(page.get_by_text(f"Left out: {PROMPTS} pairs of judges that are not valid.")).to_be_visible()
    untested.check()
    expect(counted).to_contain_text(f"{2 * PROMPTS} pairs")
    expect(page.get_by_text("Left out:")).to_have_count(0)


@pytest.mark.long
def test_one_click_calibrates_on_the_only_known_pairs(page: Page) -> None:
    page.goto("/p/default/evaluations/weighed?tab=judges")
    card = page.get_by_role("region", name="Judge asked")
    card.get_by_role("button", name="Calibrate", exact=True).click()
    expect(page.get_by_role("dialog").get_by_placeholder("there is none yet")).to_be_visible()
    csrf = page.request.get("/api/v1/session").json()["csrf_token"]
    rows = "".join(
        json.dumps({"prompt": f"Q {n}?", "chosen": f"good {n}", "rejected": f"bad {n}"}) + "\n" for n in range(9)
    )
    made = page.request.post(
        "/api/v1/projects/default/datasets/import",
        headers={"X-CSRF-Token": csrf},
        multipart={"name": "known", "file": {"name": "a.jsonl", "mimeType": "text/plain", "buffer": rows.encode()}},
    )
    assert made.ok, made.text()
    page.reload()
    card.get_by_role("button", name="Calibrate on known").click()
    expect(card.get_by_role("status")).to_have_text("Asked about calibration-known")
    card.get_by_role("link", name="calibration-known").click()
    expect(page.get_by_role("region", name="Judge asked")).to_be_visible()


def test_a_judge_that_rewards_answers_is_chosen_with_what_is_known_of_it(page: Page) -> None:
    page.goto("/p/default/launch/grpo")
    page.get_by_role("button", name="Add to rules").click()
    page.get_by_role("combobox", name="Kind of rules 1").click()
    page.get_by_role("option", name="judge", exact=True).click()
    judge = page.get_by_role("group", name="rules 1").get_by_placeholder("EVALUATION/JUDGE")
    judge.fill("ask")
    page.get_by_role("option", name="weighed/asked").click()
    expect(judge).to_have_value("weighed/asked")
    expect(page.get_by_role("group", name="rules 1")).to_contain_text("not calibrated")
