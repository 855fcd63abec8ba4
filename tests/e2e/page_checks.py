"""What every page must pass: axe in light and dark, and nothing wider than a phone."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, TimeoutError

_AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"


def faults_of(page: Page, what: str) -> dict[str, Any]:
    """The faults of what the page shows now, on a wide screen; keys say where and which rule."""
    settle(page)
    _shoot(page, f"{what}-1440-light")
    if not page.evaluate("'axe' in window"):
        page.evaluate(_AXE.read_text())
    faults = _violations(page, f"{what} light", "{resultTypes: ['violations']}")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("document.documentElement.dataset.mantineColorScheme === 'dark'")
    settle(page)
    _shoot(page, f"{what}-1440-dark")
    # Nothing but colours depends on the scheme.
    faults |= _violations(page, f"{what} dark", "{resultTypes: ['violations'], runOnly: ['color-contrast']}")
    page.emulate_media(color_scheme="light")
    return faults | too_wide(page, what)


def too_wide(page: Page, what: str) -> dict[str, Any]:
    before = page.viewport_size
    page.set_viewport_size({"width": 390, "height": 844})
    try:
        page.wait_for_function("document.documentElement.scrollWidth <= 390", timeout=2000)
    except TimeoutError:
        wide = page.evaluate("document.documentElement.scrollWidth")
        return {f"{what} width": f"{wide} pixels on a phone of 390"}
    finally:
        _shoot(page, f"{what}-390")
        if before:
            page.set_viewport_size(before)
    return {}


def unfold(section: Locator) -> None:
    """Open a part of a report, if it is not open already."""
    fold = section.locator("details").first
    if fold.get_attribute("open") is None:
        fold.locator("summary").first.click()


def go(page: Page, address: str) -> None:
    """Goes to another page of the open dashboard as a link does, without loading all of it again."""
    page.evaluate("address => history.pushState(null, '', address)", address)
    page.wait_for_function(
        "address => { const { status, resolvedLocation } = __TSR_ROUTER__.state;"
        " return status === 'idle' && resolvedLocation?.href.startsWith(address.split('?')[0]) }",
        arg=address,
    )


def settle(page: Page) -> None:
    """Waits until nothing loads any more, and no colour is in the middle of a transition. The wheel of a running run
    turns on."""
    page.wait_for_function("!document.querySelector('[aria-busy=true]')")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")  # it begins later
    ends = "one.effect.getComputedTiming().endTime < Infinity"
    page.wait_for_function(f"!document.getAnimations().some(one => one.playState === 'running' && {ends})")


def _violations(page: Page, what: str, options: str) -> dict[str, Any]:
    violations = page.evaluate(f"axe.run(document, {options}).then(r => r.violations)")
    return {
        f"{what} {violation['id']}": (violation["help"], [node["target"] for node in violation["nodes"][:3]])
        for violation in violations
        if violation["impact"] in ("serious", "critical")
    }


def _shoot(page: Page, name: str) -> None:
    """A picture to look at, where someone asks for them."""
    folder = os.environ.get("STEERBOARD_SCREENSHOTS")
    if folder:
        settle(page)
        page.screenshot(path=Path(folder) / (re.sub(r"[^a-z0-9-]+", "_", name.lower()) + ".png"), full_page=True)


def told(faults: dict[str, Any]) -> str:
    return "\n".join(f"{what}: {fault}" for what, fault in faults.items())
