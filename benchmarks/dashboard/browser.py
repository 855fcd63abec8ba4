"""How much JavaScript the first load of the dashboard takes, as a real browser receives it."""

from __future__ import annotations

import shutil
import time
from typing import Any

from harness.running_platform import Bench

_IDLE_SECONDS = 3.0
_LOAD_SECONDS = 60.0


def bundle(bench: Bench) -> dict[str, Any]:
    """{bundle_kb: compressed, of all scripts until none has come for some seconds}; null with the reason instead."""
    chromium = shutil.which("chromium") or shutil.which("chromium-headless-shell") or shutil.which("google-chrome")
    if chromium is None:
        return {"bundle_kb": None, "bundle_missing": "no Chromium on this machine"}
    from playwright.sync_api import Error, sync_playwright

    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            try:
                return _first_load(browser, bench)
            finally:
                browser.close()
    except Error as error:
        return {"bundle_kb": None, "bundle_missing": str(error).splitlines()[0]}


def _first_load(browser: Any, bench: Bench) -> dict[str, Any]:
    """Signed in by the one-time link in one window; Home is then opened in another, whose cache is empty."""
    signing_in = browser.new_context()
    page = signing_in.new_page()
    page.goto(bench.sign_in)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/p/default**")
    state = signing_in.storage_state()
    signing_in.close()
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
        return {"bundle_kb": None, "bundle_missing": "the page loaded no script: is the dashboard built (make web)?"}
    return {"bundle_kb": round(sum(loaded.values()) / 1024, 1), "bundle_files": len(loaded)}
