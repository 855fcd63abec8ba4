"""A campaign in one dialog, from the page Annotate and from a dataset's page."""

from __future__ import annotations

from dashboard_world import World
from page_checks import faults_of, told
from playwright.sync_api import Page, expect
from ranking_desks import ENTRANTS, EVALUATION, Desks

PAIRS = [{"prompt": f"Name colour {n}.", "chosen": f"red {n}", "rejected": f"blue {n}"} for n in range(4)]


def test_the_page_annotate_asks_about_an_evaluation(desks: Desks, page: Page) -> None:
    page.goto("/p/default/rank")
    page.get_by_role("main").get_by_role("button", name="New campaign").first.click()
    dialog = page.get_by_role("dialog", name="New campaign")
    dialog.get_by_role("combobox", name="Evaluation").fill(EVALUATION)
    page.get_by_role("option", name=f"{EVALUATION} · 3 entrants, 12 prompts").click()
    for entrant in ENTRANTS:
        expect(dialog.get_by_text(entrant)).to_be_visible()
    dialog.get_by_label("Name").fill("asked-here")
    dialog.get_by_label("Maximum number of prompts").fill("2")
    faults = faults_of(page, "new campaign of an evaluation")
    dialog.get_by_role("button", name="Open the campaign").click()
    card = page.get_by_role("region", name="Campaign asked-here")
    expect(card).to_contain_text("0 of 2 prompts are done")
    card.get_by_role("link", name="Annotate some yourself").click()
    expect(page.get_by_role("region", name="Answer C")).to_be_visible()
    assert faults == {}, told(faults)


def test_a_dataset_of_pairs_asks_people_which_side_is_better(desks: Desks, page: Page, world: World) -> None:
    world.import_rows("colour-pairs", "preferences", PAIRS)
    page.goto("/p/default/datasets/colour-pairs")
    page.get_by_role("button", name="New campaign").click()
    dialog = page.get_by_role("dialog", name="New campaign")
    expect(dialog.get_by_text("4 prompts with chosen (4), rejected (4)")).to_be_visible()
    expect(dialog.get_by_role("radio", name="Pairwise")).to_be_checked()
    dialog.get_by_label("Name").fill("which-side")
    faults = faults_of(page, "new campaign of a dataset")
    dialog.get_by_role("button", name="Open the campaign").click()
    card = page.get_by_role("region", name="Campaign which-side")
    expect(card).to_contain_text("0 of 4 prompts are done")
    faults |= faults_of(page, "campaign of a dataset")
    assert world.get("datasets/colour-pairs/answers")["evaluation"] == "colour-pairs-answers-1"
    card.get_by_role("link", name="Annotate some yourself").click()
    expect(page.get_by_role("region", name="Answer B")).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_text("1 done, 3 left")).to_be_visible()
    # Once more: the same evaluation, now by name.
    page.goto("/p/default/rank")
    page.get_by_role("main").get_by_role("button", name="New campaign").first.click()
    page.get_by_text("A dataset", exact=True).click()
    dialog.get_by_role("combobox", name="Dataset").fill("colour-pairs")
    page.get_by_role("option", name="colour-pairs · 4 preferences").click()
    dialog.get_by_role("button", name="Open the campaign").click()
    expect(page.get_by_role("heading", level=1, name="colour-pairs-answers-1")).to_be_visible()
    expect(page.get_by_role("region", name="Campaign which-side")).to_be_visible()
    assert faults == {}, told(faults)
