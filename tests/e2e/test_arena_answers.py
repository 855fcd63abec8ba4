"""The arena with the worker that answers in it: what it writes is seen as it comes, and who it was after the vote."""

from __future__ import annotations

import re

import pytest
from dashboard_world import World
from playwright.sync_api import Page, expect

# Keeps every text that an answer has had, by its letter.
_WATCH = """
    window.seen = { A: new Set(), B: new Set() }
    new MutationObserver(() => {
      for (const letter of ["A", "B"]) {
        const text = document.querySelector(`[aria-label="Answer ${letter}"] pre.text`)?.textContent
        if (text) window.seen[letter].add(text)
      }
    }).observe(document.body, { childList: true, subtree: true, characterData: true })
"""


@pytest.mark.long
def test_two_scores_of_a_policy_answer_as_one_looks_and_their_names_follow_the_vote(
    page: Page, world: World, steered: str
) -> None:
    asked = [{"model": steered, "score": 5.0, "name": "joyful"}, {"model": steered, "score": -5.0, "name": "terse"}]
    world.client.post("arenas", json={"name": "steering", "entrants": asked}).raise_for_status()
    page.goto("/p/default/arena")
    page.get_by_role("textbox", name="Prompt").fill("Tell of a blue lake.")
    page.evaluate(_WATCH)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("group", name="Your vote")).to_be_visible()
    texts = {letter: page.get_by_label(f"Answer {letter}").locator("pre.text").inner_text() for letter in "AB"}
    low, high = sorted(texts.values(), key=len)
    assert low == "No."
    # The colour that a policy this small gives depends on the machine that trained it.
    assert re.fullmatch(r"A lovely \w+ thing, gladly and with joy!", high)
    (joyful,) = [letter for letter, text in texts.items() if text != "No."]
    seen = page.evaluate("letter => [...window.seen[letter]]", joyful)
    assert len(seen) > 1, "the answer came all at once"
    assert all(texts[joyful].startswith(text) for text in seen)
    main = page.locator("main")
    assert not [name for name in ("joyful", "terse") if name in main.inner_text()]

    # The second turn is answered after the first.
    page.get_by_role("textbox", name="Ask both again").fill("Tell of a red stone.")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("region", name="Turn")).to_have_count(2)
    expect(page.get_by_role("group", name="Your vote")).to_be_visible()
    page.keyboard.press(joyful.lower())
    expect(page.get_by_text(f"Your vote: {joyful} is better.")).to_be_visible()
    expect(page.get_by_label(f"Answer {joyful}").last.get_by_text("joyful", exact=True)).to_be_visible()
    page.get_by_role("tab", name="Leaderboard").click()
    expect(page.get_by_text("1 vote")).to_be_visible()
    assert world.get("arenas/steering/leaderboard")["matrix"]["joyful"]["terse"] == 1
