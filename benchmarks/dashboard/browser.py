"""A real browser, and how much JavaScript the first load of the dashboard takes in it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harness.running_platform import Bench

_IDLE_SECONDS = 3.0
_LOAD_SECONDS = 60.0


class NoBrowser(Exception):
    """There is no Chromium on this machine."""


class NoScripts(Exception):
    """The dashboard is not built."""


@contextmanager
def chromium() -> Iterator[Any]:
    path = shutil.which("chromium") or shutil.which("chromium-headless-shell") or shutil.which("google-chrome")
    if path is None:
        raise NoBrowser("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def sign_in(bench: Bench) -> Any:
    """What a browser stores that signed in. The link is good for one time, so ask once."""
    with chromium() as browser:
        page = browser.new_page()
        page.goto(bench.sign_in)
        page.get_by_role("button", name="Sign in", exact=True).click()
        page.wait_for_url("**/p/default**")
        return page.context.storage_state()


def bundle(bench: Bench, state: Any) -> dict[str, Any]:
    """{kb: compressed, files}: the scripts that Home loads into an empty cache until none has come for some seconds."""
    with chromium() as browser:
        context = browser.new_context(storage_state=state)
        page = context.new_page()
        network = context.new_cdp_session(page)
        network.send("Network.enable")
        scripts: dict[str, str] = {}
        loaded: dict[str, int] = {}

        def response(event: dict[str, Any]) -> None:
            if "javascript" in event["response"].get("mimeType", ""):
                scripts[event["requestId"]] = event["response"]["url"]

        def finished(event: dict[str, Any]) -> None:
            if event["requestId"] in scripts:
                loaded[event["requestId"]] = event["encodedDataLength"]

        network.on("Network.responseReceived", response)
        network.on("Network.loadingFinished", finished)
        page.goto(f"{bench.url}/p/default")
        began = changed = time.monotonic()
        seen = 0
        # The live stream never ends, so the page is idle when no script has come for a while.
        while time.monotonic() - changed < _IDLE_SECONDS and time.monotonic() - began < _LOAD_SECONDS:
            page.wait_for_timeout(100)
            if len(loaded) != seen or len(loaded) < len(scripts):
                seen, changed = len(loaded), time.monotonic()
    if not loaded:
        raise NoScripts("the page loaded no script: is the dashboard built (make web)?")
    return {"kb": round(sum(loaded.values()) / 1024, 1), "files": len(loaded)}
