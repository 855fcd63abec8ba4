"""Annotators at their desks: a browser each, and the campaign as its owner sees it."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from dashboard_world import World, follow
from playwright.sync_api import Browser, BrowserContext, Error, Locator, Page, Request, expect

from support.patience import PATIENCE

# Best first; the answers name their own quality.
ENTRANTS = {"zebra-raw": "excellent", "walrus-sft": "passable", "heron-dt": "useless"}
EVALUATION = "quokka-eval"
ITEMS = 12


def jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def enter_evaluation(world: World) -> None:
    """An evaluation whose answers name their own quality."""
    questions = [
        {"question_id": 81 + n, "category": "math", "turns": [f"What is {n} plus {n}?", "Are you sure?"]}
        for n in range(ITEMS)
    ]
    sent = world.client.post("prompt-sets", files={"file": ("q.jsonl", jsonl(questions))}, data={"name": "sums"})
    sent.raise_for_status()
    body = {"name": EVALUATION, "prompts": {"set": "sums"}, "entrants": [], "check_against": []}
    world.client.post("evaluations", json=body).raise_for_status()
    for name, worth in ENTRANTS.items():
        answers = [
            {
                "question_id": 81 + n,
                "model_id": name,
                "choices": [{"index": 0, "turns": [f"An {worth} answer to {n}. " + "More of it. " * 400, "Yes."]}],
            }
            for n in range(ITEMS)
        ]
        files = {"file": ("a.jsonl", jsonl(answers))}
        world.client.post(f"evaluations/{EVALUATION}/answers", files=files).raise_for_status()


@dataclass
class Campaign:
    """A campaign as its owner sees it."""

    world: World
    name: str
    id: str

    @property
    def path(self) -> str:
        return f"evaluations/{EVALUATION}/campaigns/{self.id}"

    def annotator(self, name: str) -> str:
        """A link that signs a new annotator in and shows the first item."""
        answer = self.world.client.post(f"{self.path}/annotators", json={"name": name})
        answer.raise_for_status()
        return self.world.url + str(answer.json()["link"])

    def rankings(self) -> list[dict[str, Any]]:
        return list(self.world.get(f"{self.path}/rankings?limit=1000")["items"])

    def arrive(self, number: int) -> list[dict[str, Any]]:
        self.world.wait(lambda: len(self.rankings()) >= number, f"{number} rankings")
        return self.rankings()


@dataclass
class Desk:
    """An annotator's browser. `said`: all that it got from the server."""

    context: BrowserContext
    page: Page
    said: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def best_first(self) -> list[str]:
        """The keys of the answers on the screen."""
        texts = {key: self.page.get_by_role("region", name=f"Answer {key}").inner_text() for key in "ABC"}
        return sorted(texts, key=lambda key: next(i for i, w in enumerate(ENTRANTS.values()) if w in texts[key]))

    def rank_by_keys(self) -> None:
        for rank, key in enumerate(self.best_first(), start=1):
            self.page.keyboard.press(key.lower())
            self.page.keyboard.press(str(rank))

    def submit(self) -> str:
        """Enter; the prompt that was ranked."""
        prompt = self.prompt()
        self.page.keyboard.press("Enter")
        expect(self.page.get_by_role("region", name="Prompt").get_by_text(prompt)).to_have_count(0)
        return prompt

    def banner(self) -> Locator:
        return self.page.get_by_role("status").filter(has_text="No connection")

    def prompt(self) -> str:
        return self.page.get_by_role("region", name="Prompt").inner_text()


class Desks:
    def __init__(self, world: World, browser: Browser) -> None:
        self.world, self.browser = world, browser
        self.open: list[Desk] = []

    def campaign(self, name: str, **given: Any) -> Campaign:
        answer = self.world.client.post(f"evaluations/{EVALUATION}/campaigns", json={"name": name, **given})
        answer.raise_for_status()
        return Campaign(self.world, name, answer.json()["id"])

    def of(self, name: str) -> Campaign:
        """A campaign that was made on the page."""
        made = self.world.get(f"evaluations/{EVALUATION}/campaigns/{name}")
        return Campaign(self.world, name, made["id"])

    def sit(self, link: str, *, wait: bool = True, **options: Any) -> Desk:
        context = self.browser.new_context(base_url=self.world.url, bypass_csp=True, **options)
        context.set_default_timeout(1000 * PATIENCE)
        desk = Desk(context, context.new_page())
        self.open.append(desk)

        def hear(request: Request) -> None:
            # A page that is left at this moment has read no body either.
            with suppress(Error):
                answer = request.response()
                if answer is not None and "/api/" in answer.url:
                    desk.said.append(f"{answer.status} {answer.headers} {answer.text()}")

        desk.page.on("requestfinished", hear)
        desk.page.on("pageerror", lambda error: desk.errors.append(str(error)))
        follow(desk.page, link)
        if wait:
            desk.page.get_by_role("region", name="Answer A").wait_for()
        return desk


def right(rankings: list[dict[str, Any]]) -> list[bool]:
    return [ranking["ranks"] == dict(zip(ENTRANTS, (1, 2, 3), strict=True)) for ranking in rankings]
