"""The playground in a browser, with a policy that has really learned to be steered."""

from __future__ import annotations

import re
from typing import Any

from dashboard_world import World, follow
from playwright.sync_api import BrowserContext, Page, expect


def columns_of(page: Page) -> list[tuple[str, float]]:
    """(text, reward) of each column, once all were scored; "" for an empty answer."""
    columns = page.get_by_role("article")
    columns.first.wait_for()
    expect(columns.locator("[data-reward]")).to_have_count(columns.count())
    return [
        (
            "".join(column.locator("pre.text").all_inner_texts()),
            float(column.locator("[data-reward]").get_attribute("data-reward") or 0),
        )
        for column in columns.all()
    ]


def test_three_scores_give_three_answers_with_falling_rewards(
    page: Page, context: BrowserContext, world: World, steered: str
) -> None:
    page.goto(f"/p/default/models/{steered}")
    page.get_by_role("link", name="Try it").click()
    expect(page.get_by_role("article")).to_have_count(3)
    page.get_by_label("Prompt", exact=True).fill("Tell of a blue lake.")
    page.keyboard.press("Control+Enter")
    high, middle, low = columns_of(page)
    assert len({high[0], middle[0], low[0]}) == 3
    assert high[1] > middle[1] > low[1]

    # The address is the comparison: another tab shows the same answers.
    other = context.new_page()
    other.goto(page.url)
    assert columns_of(other) == [high, middle, low]
    other.close()

    # A link shows them to someone without an account.
    page.get_by_role("button", name="Share").click()
    sharing = page.get_by_role("dialog", name="Share the answers")
    sharing.get_by_role("button", name="Create a link").click()
    expect(sharing.get_by_role("list", name="Active links").get_by_role("listitem")).to_have_count(1)
    assert context.browser is not None
    visitor = context.browser.new_context().new_page()
    visitor.goto(sharing.get_by_label("Link", exact=True).input_value())
    for text in ("Tell of a blue lake.", high[0], middle[0], low[0]):
        expect(visitor.locator("body")).to_contain_text(" ".join(text.split()))
    visitor.context.close()
    page.keyboard.press("Escape")
    expect(sharing).to_be_hidden()

    # The slider asks again for its own column alone.
    slider = page.get_by_role("article").first.get_by_role("slider", name="Requested reward")
    before = page.url
    slider.focus()
    page.keyboard.press("Home")
    page.wait_for_url(lambda url: url != before)
    assert columns_of(page) == [low, middle, low]

    # One answer over another becomes a row of a collection, and a version of that is a dataset.
    page.go_back()
    expect(page.get_by_role("article").first.locator("pre.text")).to_have_text(high[0])
    page.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Collection").fill("liked")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    page.goto("/p/default/datasets")
    page.get_by_role("row").filter(has_text="liked").get_by_role("button", name="Make a version").click()
    page.get_by_role("link", name="liked-v1").first.click()
    expect(page.get_by_role("heading", name="liked-v1")).to_be_visible()
    (row,) = world.get("datasets/liked-v1/samples")["items"]
    assert (row["sample"]["chosen"], row["sample"]["rejected"]) == (high[0], low[0])


def test_a_guidance_of_zero_ignores_what_was_requested(page: Page, steered: str) -> None:
    page.goto(f"/p/default/playground?model={steered}")
    page.get_by_label("Prompt", exact=True).fill("Tell of a blue lake.")
    page.keyboard.press("Control+Enter")
    high, middle, low = columns_of(page)
    for column in (page.get_by_role("article").first, page.get_by_role("article").last):
        before = page.url
        column.get_by_role("slider", name="Guidance").focus()
        page.keyboard.press("Home")
        page.wait_for_url(lambda url, before=before: url != before)
        columns_of(page)
    first, second, third = columns_of(page)
    assert (high == low, first == third, second == middle) == (False, True, True)


def test_the_curve_shows_that_what_is_requested_is_achieved(page: Page, steered: str) -> None:
    page.goto(f"/p/default/playground?model={steered}")
    curve = page.get_by_role("region", name="Requested against achieved")
    curve.get_by_label("Held-out prompts").fill("4")
    curve.get_by_role("button", name="Measure").click()
    table = curve.get_by_role("table", name="Points of the curve")
    expect(table.get_by_role("row")).to_have_count(6)
    achieved = [
        float(row.get_by_role("cell").nth(3).inner_text().replace("−", "-"))
        for row in table.get_by_role("row").all()[1:]
    ]
    assert achieved == sorted(achieved)
    assert achieved[-1] > achieved[0]
    expect(curve.get_by_text(re.compile(r"rank correlation (1\.00|0\.9)"))).to_be_visible()


def test_a_viewer_reads_comparisons_and_asks_for_none(world: World, steered: str, browser: Any) -> None:
    context = browser.new_context(base_url=world.url)
    page = context.new_page()
    follow(page, world.invite("reader", "viewer"))
    page.goto("/p/default/playground")
    expect(page.get_by_text("asking models needs the role engineer")).to_be_visible()
    expect(page.get_by_role("button", name="Send")).to_have_count(0)
    token = page.evaluate("fetch('/api/v1/session').then(r => r.json()).then(s => s.csrf_token)")
    answer = context.request.post(
        f"{world.url}/api/v1/projects/default/playground/comparisons",
        headers={"X-CSRF-Token": token},
        data={"prompt": "Hi", "columns": [{"model": steered}]},
    )
    assert answer.status == 403
    context.close()
