"""Take the pictures of docs/tour.md from a running demo: `make tour`, with a finished `make demo` still running.

Chromium drives the real pages of the newest finished `demo` pipeline; nothing is changed but one comparison and one
control curve in the playground.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from steerboard.cli.client import Client

FOLDER = Path(__file__).parent
WIDE: ViewportSize = {"width": 1360, "height": 860}
PHONE: ViewportSize = {"width": 390, "height": 780}


def main() -> None:
    chromium = chromium_or_exit()
    client = Client()
    finished = [pipeline for pipeline in client.get("pipelines")["items"] if pipeline["state"] == "succeeded"]
    if not finished:
        sys.exit("no pipeline has finished: run `make demo` first")
    name = finished[0]["name"]
    runs = {run["name"]: run["id"] for run in client.get(f"pipelines/{name}")["runs"]}
    given = client.get(f"runs/{runs['dpo']}")["inputs"]
    pairs = next(source["label"] for source in given if source["name"] == "data")
    campaign = client.get(f"evaluations/{name}.report/campaigns")["items"][0]["id"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page, take = signed_in(browser, client)
        take("home", "")
        take("launch", "launch?recipe=demo")
        take("pipeline", f"pipelines/{name}")
        take("run", f"runs/{runs['dt']}")
        take("filter", f"launch/mle_filter?data={name}.labelled", lambda: _scroll(page, "What the filter keeps"))
        take("pairs", f"runs/{runs['dpo']}?tab=pairs", lambda: _to_top(page, "Pairs"))
        take("samples", f"runs/{runs['dpo']}?tab=samples", lambda: _to_top(page, "Samples"))
        take("runs", "runs")
        report = client.get(f"evaluations/{name}.report")
        dt = next(one["name"] for one in report["entrants"] if one["score"] == 5.0)
        take("trace", f"evaluations/{name}.report?tab=items&item=0&traced={dt}")
        take("compare", f"compare?runs={runs['mle']}&runs={runs['rwr']}&runs={runs['dt']}")
        take("dataset", f"datasets/{name}.labelled?row=0")
        take("statistics", f"datasets/{name}.labelled?view=statistics")
        take("methods", f"datasets/{pairs}?view=methods")
        take("cleaning", f"datasets/{pairs}?view=cleaning", lambda: _count(page))
        take("rank", f"rank/{campaign}")
        take("model", f"models/{name}.dt")
        take("playground", f"playground?model={name}.dt", lambda: _compare(page))
        take("curve", "", lambda: _curve(page, name))
        page.set_viewport_size(PHONE)
        page.emulate_media(color_scheme="dark")
        take("phone", f"pipelines/{name}")
        browser.close()


def chromium_or_exit() -> str:
    browser = shutil.which("chromium") or shutil.which("chromium-headless-shell") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("no Chromium on this machine")
    return browser


def signed_in(browser: Browser, client: Client) -> tuple[Page, Callable[..., None]]:
    """A page of the dashboard, and what takes its pictures."""
    link = client.url + client.post("/api/v1/sign-in-links")["path"]
    context = browser.new_context(  # waits are functions, which the pages' policy forbids
        base_url=f"{client.url}/p/default/",
        viewport=WIDE,
        bypass_csp=True,
    )
    page = context.new_page()
    page.goto(link)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/p/**")
    return page, _taker(page)


def _taker(page: Page) -> Callable[..., None]:
    def take(name: str, path: str, prepare: Callable[[], None] | None = None) -> None:
        page.goto(path)
        page.get_by_role("heading", level=1).wait_for()
        if prepare:
            prepare()
        page.wait_for_function("!document.querySelector('[aria-busy=true]')")
        page.wait_for_timeout(700)  # charts and the fading of what was hovered
        page.screenshot(path=FOLDER / f"{name}.png")
        print(f"docs/tour/{name}.png")

    return take


def _count(page: Page) -> None:
    button = page.get_by_role("button", name="Count what would be dropped")
    if button.count():
        button.click()
    page.get_by_label("Name of the new version").wait_for(timeout=120_000)


def _to_top(page: Page, tab: str) -> None:
    page.get_by_role("tab", name=tab).evaluate("tab => tab.scrollIntoView()")


def _scroll(page: Page, heading: str) -> None:
    page.get_by_role("heading", name=heading).first.scroll_into_view_if_needed()


def _compare(page: Page) -> None:
    page.get_by_label("Prompt", exact=True).fill("Tell me about the dog.")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("[data-reward]")).to_have_count(3, timeout=120_000)


def _curve(page: Page, pipeline: str) -> None:
    page.goto(f"playground?model={pipeline}.dt")
    card = page.get_by_role("region", name="Requested against achieved")
    table = card.get_by_role("table", name="Points of the curve")
    card.get_by_role("button", name="Measure").click()
    stop = card.get_by_role("button", name="Stop")
    stop.wait_for()
    stop.wait_for(state="hidden", timeout=300_000)
    expect(table.get_by_role("row")).to_have_count(6)
    card.scroll_into_view_if_needed()


if __name__ == "__main__":
    main()
