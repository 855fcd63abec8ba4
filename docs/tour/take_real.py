"""Take the picture of the real demo from its home: `make tour-real`, with `steerboard up` running.

Chromium drives the real pages of the newest finished `demo-real` pipeline; nothing is changed but one comparison.
"""

from __future__ import annotations

import sys

from playwright.sync_api import expect, sync_playwright
from take import chromium_or_exit, signed_in

from steerboard.cli.client import Client

PROMPT = "Write a one-sentence customer review of a small hotel by the sea."
GUIDANCE = 3.0


def main() -> None:
    client = Client()
    pipelines = client.get("pipelines")["items"]
    name = next((pipeline["name"] for pipeline in pipelines if pipeline["name"].startswith("demo-real-")), None)
    if name is None:
        sys.exit("there is no real demo here: run `make demo-real` first")
    column = {"model": f"{name}.dt", "decoding": {"guidance": GUIDANCE, "max_new_tokens": 48}}
    body = {
        "prompt": PROMPT,
        "columns": [{**column, "score": score} for score in (5.0, 0.0, -5.0)],
        "reward": f"{name}.reward",
    }
    made = client.post("playground/comparisons", body)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_or_exit(), args=["--no-sandbox"])
        page, take = signed_in(browser, client)

        def scored() -> None:
            expect(page.locator("[data-reward]")).to_have_count(3, timeout=300_000)

        take("real", f"playground?c={made['id']}", scored)
        browser.close()


if __name__ == "__main__":
    main()
