"""The report of an evaluation in a browser: the answer, folded sources, pairs as a matrix, and links for others."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from dashboard_world import World
from page_checks import faults_of, told, unfold
from playwright.sync_api import Browser, Locator, Page, expect
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from support.rows.evaluation_rows import Evaluated
from support.rows.two_rewards import enter_two_rewards

PROMPTS = 24
# The first answers best; the next two are alike.
SCORES = {"alpha": (9, 9), "beta": (6, 7), "gamma": (7, 6), "delta": (4, 4), "epsilon": (3, 3), "zeta": (1, 2)}


def rows(folder: Path, name: str, samples: list[dict[str, object]]) -> Path:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in samples))
    return path


@pytest.fixture(scope="module")
def six(world: World, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An evaluation of six entrants that three judges have graded."""
    folder = tmp_path_factory.mktemp("six")
    questions = [{"question_id": at, "turns": [f"Tell of number {at}."]} for at in range(PROMPTS)]
    with rows(folder, "questions", questions).open("rb") as file:
        world.client.post("prompt-sets", files={"file": file}, data={"name": "six-set"}).raise_for_status()
    world.client.post("evaluations", json={"name": "six", "prompts": {"set": "six-set"}}).raise_for_status()
    answers = [
        {"question_id": at, "model_id": name, "choices": [{"index": 0, "turns": [f"{name} of {at}."]}]}
        for name in SCORES
        for at in range(PROMPTS)
    ]
    with rows(folder, "answers", answers).open("rb") as file:
        world.client.post("evaluations/six/answers", files={"file": file}).raise_for_status()
    for judge in ("first", "second", "third"):
        grades = [
            {"question_id": at, "model": name, "judge": [judge, "single-v1"], "score": two[at % 2], "turn": 1}
            for name, two in SCORES.items()
            for at in range(PROMPTS)
        ]
        with rows(folder, judge, grades).open("rb") as file:
            world.client.post("evaluations/six/judgments", files={"file": file}).raise_for_status()
    return "six"


def test_the_report_answers_first_and_opens_its_sources_and_pairs(page: Page, six: str) -> None:
    page.goto(f"/p/default/evaluations/{six}?tab=report")
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_contain_text("alpha wins: against beta, the closest of 5 rivals, its win rate is 100.0%")
    expect(answer).to_contain_text("judge first")
    expect(answer).to_contain_text("The prompts were not checked against training data.")
    # What the answer is made of is open, and no other source.
    expect(page.get_by_role("region", name="Entrants by every source").get_by_role("table")).to_be_visible()
    source = page.get_by_role("region", name=re.compile("^first"))
    expect(source).to_contain_text("alpha wins. The answer above is by this source.")
    expect(page.get_by_text("its win rate is 100.0%")).to_have_count(1 + 2)  # the answer, and two folded sources
    expect(source.get_by_role("table").first).to_be_visible()
    second = page.get_by_role("region", name=re.compile("^second"))
    expect(second.get_by_role("table")).to_have_count(0)
    second.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(second.get_by_role("table").first).to_be_visible()

    matrix = source.get_by_role("table", name="Win rate of the row against the column")
    expect(matrix.get_by_role("row")).to_have_count(7)
    cell = matrix.get_by_role("button", name=re.compile("^gamma against delta: 100%, significant"))
    for centred in (cell, matrix.get_by_role("columnheader").first):
        expect(centred).to_have_css("text-align", "center")
    cell.focus()
    page.keyboard.press("Enter")
    pair = page.get_by_role("region", name="gamma against delta")
    expect(pair).to_contain_text(f"{PROMPTS} / 0 / 0")
    # Next to its cell, which has the keyboard again when it is closed.
    beside, at = pair.bounding_box(), cell.bounding_box()
    assert beside is not None
    assert at is not None
    apart = beside["x"] - at["x"] - at["width"], at["x"] - beside["x"] - beside["width"]
    assert 0 <= max(apart) < 60
    page.keyboard.press("Escape")
    expect(pair).to_have_count(0)
    expect(cell).to_be_focused()
    matrix.get_by_role("button", name="delta against gamma").click()
    pair = page.get_by_role("region", name="delta against gamma")
    expect(pair).to_contain_text(f"0 / 0 / {PROMPTS}")
    faults = faults_of(page, "report-matrix")
    assert not faults, told(faults)
    pair.get_by_role("link", name=str(PROMPTS), exact=True).click()
    expect(page.get_by_role("status")).to_contain_text(f"{PROMPTS} items")
    expect(page.get_by_role("article")).to_contain_text("gamma of 0.")


def test_a_report_is_shared_by_a_link_and_the_link_is_revoked(
    page: Page, six: str, world: World, browser: Browser
) -> None:
    page.goto(f"/p/default/evaluations/{six}?tab=report")
    page.get_by_role("button", name="Export").click()
    expect(page.get_by_role("menuitem", name="PDF")).to_have_attribute("href", re.compile(r"/report\.pdf$"))
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Share").click()
    dialog = page.get_by_role("dialog", name="Share the report")
    expect(dialog).to_contain_text("There are no active links.")
    dialog.get_by_role("combobox", name="Valid for").click()
    page.get_by_role("option", name="30 days").click()
    dialog.get_by_role("button", name="Create a link").click()
    address = dialog.get_by_label("Link", exact=True).input_value()
    expect(dialog.get_by_role("listitem")).to_have_count(1)
    faults = faults_of(page, "report-share")
    assert not faults, told(faults)

    stranger = browser.new_context()
    shared = stranger.new_page()
    shared.goto(address)
    expect(shared.locator(".answer")).to_contain_text("alpha wins: against beta")
    shared.get_by_text("Judge first-single", exact=True).click()
    expect(shared.get_by_role("table").first).to_contain_text("Entrant")
    assert shared.evaluate("getComputedStyle(document.querySelector('.answer')).borderLeftStyle") == "solid"

    dialog.get_by_role("button", name="Revoke").click()
    expect(dialog).to_contain_text("There are no active links.")
    answer = shared.goto(address)
    assert answer is not None
    assert answer.status == 404
    expect(shared.get_by_role("heading")).to_have_text("There is nothing here")
    stranger.close()


def signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def check_curve(page: Page, section: Locator, curve: dict[str, Any], of: str) -> None:
    """Its points under the pointer, from the lowest request to the highest."""
    expect(section).to_contain_text(f"{curve['model']} Spearman {signed(curve['spearman'])}")
    chart = section.get_by_role("img", name=re.compile(r"^mean reward .* over requested score\."))
    area = chart.locator(".u-over")
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    assert box is not None
    for place, point in enumerate(curve["points"]):
        page.mouse.move(box["x"] + 2 + place / 2 * (box["width"] - 4), box["y"] + box["height"] / 2)
        drawn = [float(text) for text in section.locator(".chart-legend [data-value]").all_inner_texts()]
        assert drawn == pytest.approx([point["requested"], point["achieved"]["value"]], abs=0.005), of


def test_each_reward_has_its_curve_and_the_matrix_their_correlations(
    rows_page: Page, sessions: sessionmaker[Session], project: Project
) -> None:
    enter_two_rewards(Evaluated(sessions, project, name="steered", prompts=4))
    page = rows_page
    page.goto("/p/default/evaluations/steered?tab=report")
    report = page.request.get("/api/v1/projects/default/evaluations/steered/report").json()
    shown = [(reward["reward_model"], reward["reward_model"], reward["curves"]) for reward in report["rewards"]]
    shown += [
        (f"Sum: {reward_sum['name']}", reward_sum["name"], reward_sum["curves"]) for reward_sum in report["reward_sums"]
    ]
    assert [of for _, of, _ in shown] == ["helpful", "harmless", "both"]
    for title, of, curves in shown:
        section = page.get_by_role("region", name=title, exact=True)
        unfold(section)
        (curve,) = curves
        check_curve(page, section, curve, of)
    expect(page.get_by_role("region", name="Sum: both")).to_contain_text(
        "1 × helpful − 0.5 × harmless, each as z-scores"
    )

    together = report["reward_correlations"]
    section = page.get_by_role("region", name="Correlation of the reward models")
    section.locator("summary").click()
    expect(section).to_contain_text(f"over {together['n']} answers")
    rows = section.get_by_role("table", name="Correlation of the rewards").get_by_role("row")
    for at, name in enumerate(together["names"]):
        expect(rows.nth(0).get_by_role("columnheader").nth(at + 1)).to_have_text(name)
        expect(rows.nth(at + 1).get_by_role("rowheader")).to_have_text(name)
        pairs = zip(together["pearson"][at], together["spearman"][at], strict=True)
        expect(rows.nth(at + 1).get_by_role("cell")).to_have_text([signed(r) + signed(rho) for r, rho in pairs])
    faults = faults_of(page, "report-rewards")
    assert not faults, told(faults)


def test_a_win_rate_has_those_of_like_length_and_adjusted_for_length_next_to_it(
    rows_page: Page, sessions: sessionmaker[Session], project: Project
) -> None:
    """`even` is always as long as `sft`, so that length explains nothing: it has neither figure."""
    made = Evaluated(sessions, project, name="lengths", prompts=12)
    for name, letters in (("sft", [10] * 12), ("even", [10] * 12), ("long", [10, 40, 10, 10] * 2 + [40, 10, 10, 10])):
        made.entrant(name, letters=letters)
    made.rewards({"sft": [1.0] * 12, "even": [2.0] * 12, "long": [0.0, 2.0, 0.0, 0.0] * 3})
    page = rows_page
    page.goto("/p/default/evaluations/lengths?tab=report")
    section = page.get_by_role("region", name="Entrants by every source")
    rows = section.get_by_role("table").get_by_role("row")
    report = page.request.get("/api/v1/projects/default/evaluations/lengths/report").json()
    (row,) = [row for row in report["methods"] if row["entrant"] == "long"]
    adjusted = f"{row['reward_length_adjusted']['reward']['value']:.1%}"
    expect(rows.filter(has_text="long")).to_contain_text(
        re.compile(rf"25\.0%.*n = 12.*11\.1%.*n = 9.*{re.escape(adjusted)}.*n = 12")
    )
    for words in ("length-matched", "length-adjusted"):
        expect(rows.first.get_by_text(words)).to_have_count(1)
    # What has no items has no figure.
    expect(section).not_to_contain_text("n = 0")
    lines = "[...document.querySelectorAll('.methods-table td')].map(cell => cell.getBoundingClientRect().height)"
    assert max(page.evaluate(lines)) < 80
    faults = faults_of(page, "report-lengths")
    assert not faults, told(faults)
    # The rest of the table scrolls next to the names.
    page.set_viewport_size({"width": 390, "height": 844})
    table = section.get_by_role("group", name="Entrants by every source")
    before = rows.nth(1).locator("td").first.bounding_box()
    moved = table.evaluate("box => { box.scrollLeft = 10_000; return box.scrollLeft }")
    after = rows.nth(1).locator("td").first.bounding_box()
    assert moved > 0
    assert before is not None
    assert after is not None
    assert after["x"] == pytest.approx(before["x"], abs=1)
