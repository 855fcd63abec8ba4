"""Members, tokens, the queue and signing in, as people use them in the browser."""

from __future__ import annotations

import contextlib
import re
import uuid

import httpx
import pytest
from dashboard_world import World, follow
from playwright.sync_api import Browser, Error, Page, Route, expect

BASE = {"run": "base", "source": "random:tiny-llama", "vocabulary": 400, "hidden": 32, "layers": 1, "heads": 2}


def test_an_invited_member_comes_in_by_the_link_and_sees_what_the_role_allows(
    page: Page, world: World, browser: Browser
) -> None:
    page.goto("/p/default/settings/members")
    page.get_by_role("button", name="Add a member").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("not a name")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("user")
    dialog.get_by_label("Name").fill("vera")
    dialog.get_by_role("radio", name="viewer", exact=True).check()
    dialog.get_by_role("button", name="Add", exact=True).click()
    link = world.by_name(dialog.get_by_role("textbox", name="Sign-in link").input_value())
    dialog.get_by_role("button", name="Done").click()
    expect(page.get_by_role("table", name="Members").get_by_text("vera", exact=True)).to_be_visible()

    # By plain http, but not under localhost: there browsers withhold what they do for origins that they trust.
    context = browser.new_context(base_url=world.by_name(world.url))
    theirs = context.new_page()
    follow(theirs, link)
    assert not theirs.evaluate("isSecureContext")
    expect(theirs.get_by_role("navigation", name="Places").get_by_role("link", name="Settings")).to_be_visible()
    theirs.goto("/p/default/settings")
    expect(theirs.get_by_role("tab", name="Account")).to_have_attribute("aria-selected", "true")
    expect(theirs.get_by_role("tab", name="Tokens")).to_have_count(0)
    theirs.get_by_role("tab", name="Members").click()
    expect(theirs.locator("tr[data-member=vera]")).to_contain_text("viewer")
    expect(theirs.get_by_role("button", name=re.compile("Remove|sign-in link|Add"))).to_have_count(0)
    for path, words in (("tokens", "Tokens are for owners"), ("audit", "Audit logs are for owners")):
        theirs.goto(f"/p/default/settings/{path}")
        expect(theirs.get_by_role("heading", name=words)).to_be_visible()

    # A password of their own, and the way back in by it.
    theirs.goto("/p/default/settings/account")
    theirs.get_by_label(re.compile(r"^New password\W*$")).fill("too short")
    expect(theirs.get_by_text("1 more to go")).to_be_visible()
    theirs.get_by_label(re.compile(r"^New password\W*$")).fill("a long enough one")
    theirs.get_by_label("Repeat new password").fill("a long enough one")
    theirs.get_by_role("button", name="Save").click()
    expect(theirs.get_by_role("status").filter(has_text="you sign in as vera")).to_be_visible()
    theirs.get_by_role("button", name="Sign out").click()
    theirs.get_by_label("Name").fill("vera")
    theirs.get_by_label(re.compile(r"^Password\W*$")).fill("a wrong one, surely")
    theirs.get_by_role("button", name="Sign in").click()
    expect(theirs.get_by_role("alert")).to_contain_text("There is no such user with this password")
    theirs.get_by_label(re.compile(r"^Password\W*$")).fill("a long enough one")
    theirs.get_by_role("button", name="Sign in").click()
    expect(theirs.get_by_role("heading", name="Home")).to_be_visible()

    # Another role is in force at their next click; a removed member is out.
    page.get_by_role("combobox", name="Role of vera", exact=True).click()
    page.get_by_role("option", name="engineer").click()
    expect(page.get_by_text("vera is now engineer")).to_be_visible()
    theirs.reload()
    expect(theirs.get_by_role("navigation", name="Places").get_by_role("link", name="Launch")).to_be_visible()
    page.get_by_role("button", name="Remove vera", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.locator("tr[data-member=vera]")).to_have_count(0)
    assert theirs.evaluate("fetch('/api/v1/projects/default').then((answer) => answer.status)") == 404
    context.close()


def test_the_last_owner_stays_one_and_the_page_says_why(page: Page) -> None:
    page.goto("/p/default/settings/members")
    page.get_by_role("combobox", name="Role of owner", exact=True).click()
    page.get_by_role("option", name="viewer", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Make someone else an owner first")
    expect(page.get_by_role("combobox", name="Role of owner", exact=True)).to_have_value("owner")


def test_a_token_is_shown_once_works_and_is_refused_when_revoked(page: Page, world: World) -> None:
    page.goto("/p/default/settings/tokens")
    page.get_by_role("button", name="Create a token").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("nightly")
    dialog.get_by_role("checkbox", name="run").check()
    dialog.get_by_role("button", name="Create", exact=True).click()
    secret = dialog.get_by_role("textbox", name="Token").input_value()
    expect(dialog.get_by_label("An example with curl")).to_contain_text("/api/v1/projects/default/runs")
    dialog.get_by_role("button", name="Done").click()
    row = page.locator("tr[data-token=nightly]")
    expect(row).to_contain_text("never")

    def ask(path: str) -> int:
        headers = {"Authorization": f"Bearer {secret}"}
        return httpx.get(f"{world.url}/api/v1/projects/default/{path}", headers=headers).status_code

    assert ask("runs") == 200
    assert ask("tokens") == 403
    page.reload()
    expect(row).to_contain_text(re.compile("just now|s ago"))
    expect(page.locator("body")).not_to_contain_text(secret)
    page.get_by_role("button", name="Revoke nightly").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(row).to_contain_text("revoked")
    assert ask("runs") == 401
    page.goto("/p/default/settings/audit")
    page.get_by_role("combobox", name="What").fill("token.revoke")
    expect(page).to_have_url(re.compile("action=token.revoke"))
    table = page.get_by_role("table", name=re.compile("^Audit log"))
    expect(table.locator("tbody tr:not([data-action='token.revoke'])")).to_have_count(0)
    expect(table.locator("tr[data-action='token.revoke']").first).to_contain_text("user:owner")


@pytest.mark.long
def test_rankings_and_signing_in_have_lists_of_their_own(page: Page, world: World, browser: Browser) -> None:
    page.goto("/p/default/settings/audit")
    page.get_by_role("button", name="a list of their own").click()
    expect(page.get_by_role("combobox", name="What")).to_have_value("ranking")
    page.get_by_role("button", name="Show all").click()
    page.get_by_text("Signing in", exact=True).click()
    table = page.get_by_role("table", name=re.compile("^Audit log"))
    signed_in = table.locator("tr[data-action='session.create']")
    expect(signed_in.filter(has_text="user owner").first).to_be_visible()

    # It concerns the people of all projects, so an owner who does not run the server has none of it.
    context = browser.new_context(base_url=world.url)
    theirs = context.new_page()
    follow(theirs, world.invite("orla", "owner"))
    theirs.goto("/p/default/settings/audit?outside=true")
    expect(theirs.get_by_text("Every change in default")).to_be_visible()
    expect(theirs.get_by_text("Signing in", exact=True)).to_have_count(0)
    assert theirs.request.get("/api/v1/system/audit").status == 403
    context.close()


def test_waiting_runs_are_put_in_another_order_and_a_run_that_has_gone_stays_out(page: Page, world: World) -> None:
    # No worker serves the pool, so what is queued there waits.
    pool = f"later{uuid.uuid4().hex[:6]}"
    for name, priority in (("one", 0), ("two", 0), ("three", 0), ("four", 5)):
        body = {"name": name, "pool": pool, "priority": priority, "config": BASE, "inputs": {"data.0": "things"}}
        # An equal run of another test would be taken instead.
        world.client.post("runs", json={**body, "reuse": False}).raise_for_status()

    def order() -> list[str]:
        return [run["name"] for run in world.get(f"{world.url}/api/v1/system/queues/{pool}")["runs"]]

    page.goto("/p/default/queue")
    table = page.get_by_role("table", name=f"Runs waiting in pool {pool}, in order")
    rows = table.locator("tbody tr")

    def names() -> list[str | None]:
        return [row.get_attribute("data-run") for row in rows.all()]

    expect(rows).to_have_count(4)
    assert names() == ["four", "one", "two", "three"]
    expect(rows.first).to_contain_text(f"No worker of pool {pool} is alive")

    three = table.locator("tr[data-run=three]")
    three.focus()
    page.keyboard.press("Alt+ArrowUp")
    world.wait(lambda: order() == ["four", "one", "three", "two"], "the new order")
    expect(table).not_to_have_attribute("aria-busy", "true")
    expect(three).to_be_focused()
    page.keyboard.press("Alt+ArrowUp")
    world.wait(lambda: order() == ["four", "three", "one", "two"], "the next order")
    table.locator("tr[data-run=two]").drag_to(table.locator("tr[data-run=four]"))
    world.wait(lambda: order() == ["two", "four", "three", "one"], "the order after the drag")
    expect(table.get_by_role("textbox", name="Priority of two")).to_have_value("5")
    page.get_by_role("textbox", name="Priority of one").fill("9")
    page.keyboard.press("Enter")
    world.wait(lambda: order() == ["one", "two", "four", "three"], "the order after the priority")
    page.reload()
    expect(rows).to_have_count(4)
    assert names() == ["one", "two", "four", "three"]

    # What the API refuses goes back to how it is, with the API's words. The page is kept from hearing of the end of
    # the run before it tries to move it.
    held: list[Route] = []
    page.route("**/api/v1/system/queues**", lambda route: held.append(route))
    gone = next(run["id"] for run in world.get("runs?state=queued")["items"] if run["name"] == "three")
    world.client.post(f"runs/{gone}/cancel").raise_for_status()
    with page.expect_response(lambda answer: answer.request.method == "PATCH") as answered:
        three.focus()
        page.keyboard.press("Alt+ArrowUp")
    assert answered.value.status == 409
    page.unroute_all(behavior="ignoreErrors")
    for route in held:
        with contextlib.suppress(Error):
            route.continue_()
    expect(page.get_by_role("alert")).to_contain_text("run three is cancelled")
    expect(rows).to_have_count(3)
    assert names() == ["one", "two", "four"]


@pytest.mark.long
def test_a_webhook_is_made_tested_and_its_failed_delivery_sent_again(page: Page) -> None:
    page.goto("/p/default/settings/notices")
    page.get_by_role("button", name="Create a rule").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("ci")
    # A name that is never resolved, so nothing leaves this machine.
    dialog.get_by_label("URL").fill("https://receiver.invalid/steerboard")
    dialog.get_by_role("checkbox", name="run.failed").uncheck()
    dialog.get_by_role("button", name="Create", exact=True).click()
    expect(dialog.get_by_role("textbox", name="Secret")).to_have_value(re.compile("^whsec_"))
    dialog.get_by_role("button", name="Done").click()
    card = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="ci", exact=True))
    expect(card).to_contain_text("pipeline.failed")
    expect(card).not_to_contain_text("run.failed")
    page.get_by_role("button", name="Send a test to ci").click()
    expect(card.get_by_role("status")).to_contain_text("The test did not arrive")
    page.get_by_role("switch", name="ci is active").click()
    expect(page.get_by_role("switch", name="ci is active")).not_to_be_checked()
    page.get_by_role("link", name="Deliveries of ci").click()
    row = page.locator("tr[data-delivery=test]")
    expect(row).to_contain_text("failed")
    row.get_by_role("button", name="Payload").click()
    expect(page.get_by_label("Payload of test")).to_be_visible()
    row.get_by_role("button", name="Redeliver").click()
    expect(page.get_by_role("alert")).to_contain_text("Make it active, then try again")
    page.get_by_role("link", name="All rules").click()
    page.get_by_role("switch", name="ci is active").click()
    expect(page.get_by_role("switch", name="ci is active")).to_be_checked()
    page.get_by_role("link", name="Deliveries of ci").click()
    row.get_by_role("button", name="Redeliver").click()
    expect(row).to_contain_text("pending")
    page.get_by_role("link", name="All rules").click()
    page.get_by_role("button", name="Delete ci").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="No notice rules yet")).to_be_visible()


def test_a_used_link_says_how_to_get_another(world: World, browser: Browser) -> None:
    context = browser.new_context(base_url=world.url)
    page = context.new_page()
    page.goto("/sign-in?problem=used_link")
    expect(page.get_by_role("alert")).to_contain_text("This link was used or has expired")
    expect(page.get_by_role("alert")).to_contain_text("steerboard sign-in")
    context.close()


def test_an_annotator_reaches_their_account(world: World, browser: Browser) -> None:
    context = browser.new_context(base_url=world.url)
    page = context.new_page()
    follow(page, world.invite("anna", "annotator"))
    page.get_by_role("button", name="Signed in as anna").click()
    page.get_by_role("menuitem", name="Account").click()
    expect(page.get_by_role("heading", name="Set a password")).to_be_visible()
    expect(page.get_by_role("tab")).to_have_text(["Account", "Project"])
    context.close()
