"""What pages ask for by themselves is never refused: a refusal in the browser's console is one that a person caused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from dashboard_world import RECIPE, World, follow
from page_fields import choose
from playwright.sync_api import Browser, Page, Response, expect
from ranking_desks import Desks

from support.patience import PATIENCE


@contextmanager
def no_refusals(page: Page) -> Iterator[None]:
    refused: list[str] = []

    def hear(answer: Response) -> None:
        if answer.status >= 400:
            refused.append(f"{answer.status} {answer.request.method} {answer.url}")

    page.on("response", hear)
    yield
    # The live stream never ends, so the network is never idle.
    page.wait_for_timeout(600)
    assert refused == []


def test_an_annotator_comes_in_without_a_refused_request(world: World, browser: Browser, desks: Desks) -> None:
    campaign = desks.campaign("unrefused")
    context = browser.new_context(base_url=world.url)
    context.set_default_timeout(1000 * PATIENCE)
    page = context.new_page()
    with no_refusals(page):
        page.goto("/")
        expect(page.get_by_role("heading", name="Sign in to Steerboard")).to_be_visible()
        follow(page, campaign.annotator("unrefused"))
        page.get_by_role("region", name="Answer A").wait_for()
        page.goto("/p/default")
        expect(page.get_by_role("main")).to_be_visible()
    context.close()


@pytest.mark.parametrize("kind", ["sft", "reward_model", "dpo", "ppo", "generate", "score", "academic", "base"])
def test_a_form_that_is_not_complete_sends_nothing_that_is_refused(page: Page, world: World, kind: str) -> None:
    with no_refusals(page):
        page.goto(f"/p/default/launch/{kind}")
        expect(page.get_by_role("button", name="Launch", exact=True)).to_be_visible()


def test_a_recipe_is_filled_in_without_a_refused_request(page: Page, world: World) -> None:
    with no_refusals(page):
        page.goto("/p/default/launch?recipe=demo")
        page.get_by_role("tab", name="YAML").click()
        page.get_by_label("The recipe as YAML").fill(RECIPE)
        choose(page, "instructions", "^things")
        choose(page, "preferences", "^pairs")
        expect(page.get_by_role("button", name="Launch", exact=True)).to_be_enabled()
