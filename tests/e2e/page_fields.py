"""Fields of the pages that several tests fill in."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect


def choose(page: Page, label: str, option: str) -> None:
    """Chooses in a list of datasets or models; one that fits alone is chosen by the page itself."""
    field = page.get_by_role("main").get_by_label(re.compile(f"^{label}"))
    field.click()
    page.get_by_role("option", name=re.compile(option)).click()
    expect(field).to_have_value(re.compile(option))
