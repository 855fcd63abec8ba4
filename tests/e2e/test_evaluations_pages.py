"""Evaluations in a browser: prompts and answers in, people and judges asked, report, preferences and gate out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from dashboard_world import World, follow
from page_checks import faults_of, go, told
from playwright.sync_api import Browser, Page, expect

PROMPTS = 12
RECIPE = """
name: speakers
inputs:
  instructions: {type: dataset, kind: instructions}
stages:
  plain: {run: base, source: "random:tiny-llama", vocabulary: 400, hidden: 32, layers: 1, heads: 2, max_length: 104}
"""


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def questions(folder: Path, name: str) -> Path:
    rows = [
        {"question_id": at, "category": "writing" if at % 2 else "math", "turns": [f"Tell of thing {at}.", "And more?"]}
        for at in range(PROMPTS)
    ]
    return write(folder / f"{name}.jsonl", rows)


def answers(folder: Path, *models: str) -> Path:
    rows = [
        {
            "question_id": at,
            "model_id": model,
            "choices": [{"index": 0, "turns": [f"Thing {at}, says {model}.", f"More of {at}, says {model}."]}],
        }
        for model in models
        for at in range(PROMPTS)
    ]
    return write(folder / "answers.jsonl", rows)


def judgments(folder: Path, name: str, won: int) -> Path:
    """Verdicts of a judge of pairs: `better` wins the first `won` prompts in both orders, `worse` the others."""
    rows = []
    for at in range(PROMPTS):
        winner = "model_1" if at < won else "model_2"
        rows.append(
            {
                "question_id": at,
                "model_1": "better",
                "model_2": "worse",
                "g1_winner": winner,
                "g2_winner": winner,
                "g1_judgment": f"The first is richer. Verdict on {at}: [[A]]",
                "g2_judgment": f"The second is richer. Verdict on {at}: [[B]]",
                "judge": [name, "pair-v2"],
                "turn": 1,
                "tstamp": 1700000000 + at,
            }
        )
    return write(folder / f"{name}.jsonl", rows)


def begin(page: Page, name: str) -> None:
    page.goto("/p/default/evaluations")
    page.get_by_role("link", name="New evaluation").first.click()
    page.get_by_role("textbox", name="Name", exact=True).fill(name)


def add_prompt_set(page: Page, file: Path) -> None:
    page.get_by_role("button", name="Add a prompt set").click()
    dialog = page.get_by_role("dialog")
    with page.expect_file_chooser() as chooser:
        dialog.get_by_role("button", name="File").click()
    chooser.value.set_files(file)
    dialog.get_by_role("button", name="Add it").click()
    expect(dialog).to_be_hidden()


def bring(page: Page, button: str, file: Path) -> None:
    """A file of answers or of judgments, by the dialog that the button opens."""
    page.get_by_role("button", name=button).click()
    dialog = page.get_by_role("dialog")
    with page.expect_file_chooser() as chooser:
        dialog.get_by_role("button", name="Choose a file").click()
    chooser.value.set_files(file)
    dialog.get_by_role("button", name="Import", exact=True).click()
    expect(dialog.get_by_role("alert").first).to_contain_text("imported from")
    dialog.get_by_role("button", name="Done").click()


def tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=re.compile(f"^{name}")).click()


@pytest.fixture(scope="module")
def compared(world: World, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An evaluation with imported answers of two models, for tests that look at something else."""
    folder = tmp_path_factory.mktemp("compared")
    with questions(folder, "compared-questions").open("rb") as file:
        world.client.post("prompt-sets", files={"file": file}, data={"name": "compared-set"}).raise_for_status()
    body = {"name": "compared", "prompts": {"set": "compared-set"}}
    world.client.post("evaluations", json=body).raise_for_status()
    with answers(folder, "better", "worse").open("rb") as file:
        world.client.post("evaluations/compared/answers", files={"file": file}).raise_for_status()
    return "compared"


@pytest.mark.long
def test_files_of_answers_and_judgments_become_a_report_a_gate_and_preferences(page: Page, tmp_path: Path) -> None:
    begin(page, "from-files")
    add_prompt_set(page, questions(tmp_path, "things-to-tell"))
    expect(page.get_by_text(f"{PROMPTS} prompts, no entrant yet")).to_be_visible()
    page.get_by_role("button", name="Create it without entrants").click()
    expect(page.get_by_role("heading", name="from-files")).to_be_visible()
    expect(page.get_by_text("A comparison needs at least two entrants")).to_be_visible()

    bring(page, "Answers from a file", answers(tmp_path, "better", "worse"))
    first = page.get_by_role("article", name="Prompt 1", exact=True)
    expect(first.get_by_role("region", name="Answer of better")).to_contain_text("More of 0, says better.")
    page.get_by_role("combobox", name="Category").click()
    page.get_by_role("option", name="math").click()
    expect(page.get_by_role("article")).to_have_count(PROMPTS // 2)

    tab(page, "Judges")
    bring(page, "Judgments from a file", judgments(tmp_path, "sure", PROMPTS))
    judge = page.get_by_role("region", name="Judge sure-pairwise")
    expect(judge).to_contain_text(f"{2 * PROMPTS} parsed, 0 unparsed")
    judge.get_by_role("button", name="Show the verdicts").click()
    rows = judge.get_by_role("table").get_by_role("row")
    expect(rows).to_have_count(2 * PROMPTS + 1)
    expect(rows.nth(1)).to_contain_text("better wins")
    expect(rows.nth(1)).to_contain_text("Verdict on 0")

    tab(page, "Report")
    expect(page.get_by_text("better wins").first).to_be_visible()
    tab(page, "Judges")
    bring(page, "Judgments from a file", judgments(tmp_path, "torn", PROMPTS // 2))
    tab(page, "Report")
    torn = page.get_by_role("region", name=re.compile("torn")).first
    torn.locator("summary").click()
    expect(torn.get_by_text("No winner", exact=True)).to_be_visible()

    tab(page, "Preferences")
    # All of them are chosen to begin with.
    page.get_by_role("checkbox", name="judge torn-pairwise").uncheck()
    expect(page.get_by_text("A version number is appended")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text=f"{PROMPTS} pairs from {PROMPTS} prompts")).to_be_visible()
    page.get_by_role("button", name="Make the dataset").click()
    expect(page.get_by_text(f"{PROMPTS} pairs in from-files-preferences-1")).to_be_visible()
    page.get_by_role("link", name="Open the dataset").click()
    expect(page.get_by_role("heading", name="from-files-preferences-1")).to_be_visible()


@pytest.fixture(scope="module")
def reserved(world: World, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An evaluation that a judge has read, on prompts that the project holds out, all of them."""
    folder = tmp_path_factory.mktemp("reserved")
    world.import_rows("secrets", "prompts", [{"prompt": f"Tell of secret {at}."} for at in range(500)])
    held_out = world.get(f"datasets/secrets/samples?split=held_out&limit={PROMPTS}")["items"]
    texts = [row["sample"]["prompt"][0]["content"] for row in held_out]
    assert len(texts) == PROMPTS
    asked = write(folder / "asked.jsonl", [{"question_id": at, "turns": [text]} for at, text in enumerate(texts)])
    with asked.open("rb") as file:
        world.client.post("prompt-sets", files={"file": file}, data={"name": "reserved-set"}).raise_for_status()
    body = {"name": "reserved", "prompts": {"set": "reserved-set"}}
    world.client.post("evaluations", json=body).raise_for_status()
    for kind, made in (
        ("answers", answers(folder, "better", "worse")),
        ("judgments", judgments(folder, "sure", PROMPTS)),
    ):
        with made.open("rb") as file:
            world.client.post(f"evaluations/reserved/{kind}", files={"file": file}).raise_for_status()
    return "reserved"


def test_pairs_of_held_out_prompts_train_a_reward_model_only_where_that_was_chosen(
    page: Page, reserved: str, world: World
) -> None:
    page.goto(f"/p/default/evaluations/{reserved}?tab=preferences")
    counted = page.get_by_role("status").filter(has_text=f"{PROMPTS} pairs from {PROMPTS} prompts")
    expect(counted).to_contain_text(f"0 for training, {PROMPTS} held out")
    choice = page.get_by_role("radiogroup", name=f"Pairs of the {PROMPTS} held-out prompts")
    expect(choice.get_by_role("radio", name="Keep them held out")).to_be_checked()
    expect(choice).to_contain_text("Nothing is left to train a reward model on")
    page.get_by_label("Name of the dataset").fill("kept-out")
    page.get_by_role("button", name="Make the dataset").click()
    made = page.get_by_role("alert").filter(has_text=f"{PROMPTS} pairs in kept-out-1")
    expect(made).to_contain_text("none can be trained on them")
    expect(made.get_by_role("link", name="Benchmark a reward model on it")).to_be_visible()
    expect(made.get_by_role("link", name="Train a reward model on it")).to_have_count(0)

    choice.get_by_role("radio", name="Use them for training").check()
    page.get_by_label("Name of the dataset").fill("let-in")
    page.get_by_role("button", name="Make the dataset").click()
    made = page.get_by_role("alert").filter(has_text=f"{PROMPTS} pairs in let-in-1")
    expect(made).to_contain_text(f"{PROMPTS} for training, 0 held out")
    made.get_by_role("link", name="Train a reward model on it").click()
    expect(page.get_by_role("heading", name="Launch reward_model")).to_be_visible()
    expect(page.get_by_role("main").get_by_label(re.compile("^data"))).to_have_value(re.compile("^let-in-1"))
    split = {name: world.get(f"datasets/{name}")["held_out_rows"] for name in ("kept-out-1", "let-in-1")}
    assert split == {"kept-out-1": PROMPTS, "let-in-1": 0}


def test_the_gate_passes_fails_and_says_what_is_wrong_with_a_rule(
    page: Page, compared: str, world: World, tmp_path: Path
) -> None:
    with judgments(tmp_path, "strict", PROMPTS).open("rb") as file:
        world.client.post(f"evaluations/{compared}/judgments", files={"file": file}).raise_for_status()
    page.goto(f"/p/default/evaluations/{compared}?tab=gate")
    rules = page.get_by_role("textbox", name="Rules")
    rule = (
        "rules:\n  - {metric: win_rate, entrant: %s, vs: %s, by: judge, source: strict-pairwise, op: '>', value: 0.9}"
    )
    outcome = page.get_by_role("table", name="Rules with their values").get_by_role("row").last
    rules.fill(rule % ("better", "worse"))
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_text("Pass: every rule holds")).to_be_visible()
    expect(outcome).to_contain_text("0.9")
    rules.fill(rule % ("worse", "better"))
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_text("Fail: a rule does not hold")).to_be_visible()
    rules.fill(rule % ("nobody", "better"))
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_text("Rule 1, entrant")).to_be_visible()
    rules.fill("rules:\n  - {metric: win_rate")
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_text("line 2: } is missing")).to_be_visible()

    # A rule that was put together by choosing is one that the server takes.
    rules.fill("")
    adding = page.get_by_role("group", name="Add a rule")
    adding.get_by_role("combobox", name="Metric").click()
    page.get_by_role("option", name="share of unusable verdicts").click()
    adding.get_by_role("button", name="Add the rule").click()
    expect(rules).to_have_value(re.compile("metric: unparsed_rate"))
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_text("Pass: every rule holds")).to_be_visible()

    # A rule on a benchmark asks for its dataset; without a reward model to compare, it is on the accuracy itself.
    rules.fill("")
    world.import_rows("hard-pairs", "preferences", [{"prompt": "Tell.", "chosen": "Yes.", "rejected": "No."}])
    page.reload()
    adding.get_by_role("combobox", name="Metric").click()
    page.get_by_role("option", name="accuracy on a benchmark").click()
    expect(adding.get_by_role("button", name="Add the rule")).to_be_disabled()
    adding.get_by_role("combobox", name="on", exact=True).click()
    page.get_by_role("option", name="hard-pairs").click()
    adding.get_by_role("button", name="Add the rule").click()
    expect(rules).to_have_value(re.compile("metric: benchmark_accuracy, benchmark: hard-pairs, by: reward"))
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_text("the evaluation has no reward model", exact=True)).to_be_visible()


def test_answers_of_models_arrive_while_one_looks(page: Page, world: World) -> None:
    made = world.client.post("pipelines", json={"text": RECIPE, "set": ["instructions=things"]})
    made.raise_for_status()
    name = str(made.json()["name"])
    world.wait(lambda: world.get(f"pipelines/{name}")["state"] == "succeeded", name)
    begin(page, "live")
    page.get_by_text("A dataset", exact=True).click()
    page.get_by_role("combobox", name="Dataset").click()
    page.get_by_role("option", name=re.compile("^things · ")).click()
    # How many of 40 rows are held out, the project's salt decides: sometimes fewer than three.
    expect(page.get_by_role("combobox", name="Rows")).to_have_value("held-out rows")
    page.get_by_role("combobox", name="Rows").click()
    page.get_by_role("option", name="all rows").click()
    page.get_by_label("At most").fill("3")
    entrant = page.get_by_role("group", name="Entrant not chosen yet")
    entrant.get_by_role("combobox", name="Who answers").fill(name)
    page.get_by_role("option", name=re.compile(f"^{name}.plain")).click()
    chosen = page.get_by_role("group", name=f"Entrant {name}.plain")
    chosen.get_by_role("combobox", name="Decoding").click()
    page.get_by_role("option", name="own temperature, length, guidance").click()
    chosen.get_by_label("Temperature").fill("-1")
    chosen.get_by_label("Maximum answer length").fill("8")
    chosen.get_by_label("Answers per prompt").fill("2")
    expect(page.get_by_text("3 prompts × 1 entrant: 6 answers will be made.")).to_be_visible()
    chosen.get_by_label("Name in the report").fill("no name")
    page.get_by_role("button", name="Start the evaluation").click()
    expect(chosen.get_by_text("String should match pattern")).to_be_visible()
    chosen.get_by_label("Name in the report").fill("plain")
    chosen.get_by_label("Temperature").fill("0.9")
    page.get_by_role("button", name="Start the evaluation").click()
    expect(page.get_by_role("heading", name="live")).to_be_visible()
    first = page.get_by_role("article", name="Prompt 1", exact=True).get_by_role("region", name="Answer of plain")
    expect(first).to_contain_text("No answer yet.")
    expect(first).to_contain_text("8 tokens")
    expect(page.get_by_role("table", name="Entrants")).to_contain_text("6 of 6 answers")
    expect(page.get_by_text("answered", exact=True)).to_be_visible()


def test_people_are_asked_by_link_and_their_progress_shows(
    page: Page, compared: str, world: World, browser: Browser
) -> None:
    page.goto(f"/p/default/evaluations/{compared}?tab=people")
    page.get_by_role("button", name="Ask people").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("tellings")
    dialog.get_by_role("button", name="Open the campaign").click()
    expect(dialog).to_be_hidden()
    card = page.get_by_role("region", name="Campaign tellings")
    expect(card).to_contain_text("0 of 12 prompts are done")
    card.get_by_role("button", name="Invite an annotator").click()
    dialog.get_by_label("Name").fill("rosa")
    dialog.get_by_role("button", name="Create the link").click()
    link = dialog.get_by_label("Invitation link").input_value()
    dialog.get_by_role("button", name="Done").click()

    context = browser.new_context(base_url=world.url)
    annotator = context.new_page()
    follow(annotator, link)
    annotator.wait_for_url("**/rank/**")
    token = annotator.evaluate("fetch('/api/v1/session').then(r => r.json()).then(s => s.csrf_token)")
    campaign = world.get(f"evaluations/{compared}/campaigns/tellings")["id"]
    base = f"{world.url}/api/v1/projects/default/rankings"
    headers = {"X-CSRF-Token": token}
    task = context.request.post(f"{base}/{campaign}/next", headers=headers, data={"ahead": 1}).json()["items"][0]
    body = {"ranks": [1, 2], "seconds": 5, "submission": task["id"], "flag": "names in it"}
    assert context.request.post(f"{base}/tasks/{task['id']}/submit", headers=headers, data=body).ok
    context.close()

    # No reload: the stream updates the page.
    expect(card).to_contain_text("1 of 12 prompts are done")
    expect(card.get_by_role("table", name="Annotators of tellings").get_by_role("row").last).to_contain_text("rosa")
    card.get_by_role("button", name="Flags and skips (1)").click()
    expect(dialog).to_contain_text("names in it")
    page.keyboard.press("Escape")
    card.get_by_role("button", name="Gold prompts (0)").click()
    dialog.get_by_label("Add a gold prompt").fill("1")
    dialog.get_by_label("Correct rank of better").fill("1")
    dialog.get_by_label("Correct rank of worse").fill("2")
    dialog.get_by_role("button", name="Save these ranks").click()
    expect(dialog).to_contain_text("1. better, 2. worse")
    page.keyboard.press("Escape")
    card.get_by_role("button", name="Pause").click()
    expect(card.get_by_text("paused")).to_be_visible()


def test_a_judges_endpoint_is_registered_without_leaving_its_dialog(page: Page, compared: str) -> None:
    page.goto(f"/p/default/evaluations/{compared}?tab=judges&ask=true")
    dialog = page.get_by_role("dialog", name="Ask a judge")
    dialog.get_by_label("All answers at once").check()
    dialog.get_by_role("radio", name="Pair by pair").check()
    dialog.get_by_role("button", name="Register an endpoint").click()
    for label, value in (("Name", "near"), ("Address", "https://judge.invalid/v1"), ("Model name", "a-judge")):
        dialog.get_by_role("textbox", name=label, exact=False).first.fill(value)
    dialog.get_by_role("button", name="Register").click()
    expect(dialog.get_by_role("combobox", name="Endpoint")).to_have_value("near · a-judge")
    expect(dialog.get_by_role("radio", name="Pair by pair")).to_be_checked()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page).to_have_url(re.compile(r"tab=judges$"))


@pytest.mark.long
def test_a_judge_out_of_reach_says_so_and_can_be_asked_again(page: Page, compared: str, world: World) -> None:
    endpoint = {"name": "far", "base_url": "https://judge.invalid/v1", "model": "some-judge"}
    world.client.post("endpoints", json=endpoint).raise_for_status()
    page.goto(f"/p/default/evaluations/{compared}?tab=judges")
    page.get_by_role("button", name="Ask a judge").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("combobox", name="Endpoint").click()
    page.get_by_role("option", name=re.compile("^far")).click()
    # Two turns of every prompt; pairs are asked in both orders.
    expect(dialog.get_by_text(f"{2 * PROMPTS} requests will be made.")).to_be_visible()
    dialog.get_by_role("radio", name="Pair by pair").check()
    expect(dialog.get_by_text(f"{4 * PROMPTS} requests will be made.")).to_be_visible()
    dialog.get_by_role("radio", name="AlpacaEval").check()
    dialog.get_by_role("button", name="Settings").click()
    dialog.get_by_label("Attempts per request").fill("1")
    dialog.get_by_label("Name", exact=True).fill("unreachable")
    dialog.get_by_role("combobox", name="Baseline").click()
    page.get_by_role("option", name="worse").click()
    dialog.get_by_role("button", name="Ask the judge").click()
    expect(dialog).to_be_hidden()
    card = page.get_by_role("region", name="Judge unreachable")
    again = card.get_by_role("button", name="Retry what failed")
    expect(again).to_be_visible()
    again.click()
    expect(again).to_be_hidden()
    expect(again).to_be_visible()
    card.get_by_role("button", name="Remove").click()
    page.get_by_role("menuitem", name="Remove unreachable").click()
    expect(card).to_be_hidden()


def test_two_judges_become_a_jury_and_the_report_shows_what_their_word_is_worth(
    page: Page, compared: str, world: World, tmp_path: Path
) -> None:
    for name, won in (("first", PROMPTS), ("second", PROMPTS - 3)):
        with judgments(tmp_path, name, won).open("rb") as file:
            world.client.post(f"evaluations/{compared}/judgments", files={"file": file}).raise_for_status()
    page.goto(f"/p/default/evaluations/{compared}?tab=judges")
    page.get_by_role("button", name="Make a jury").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox", name="Name").fill("panel")
    for name in ("first-pairwise", "second-pairwise"):
        judges = dialog.get_by_role("combobox", name="Judges")
        judges.fill(name)
        # A click while the list still shrinks to what was typed may land on nothing.
        expect(page.get_by_role("option")).to_have_text([name])
        page.get_by_role("option", name=name).click()
        expect(judges).to_have_value("")
    dialog.get_by_role("button", name="Create").click()
    jury = page.get_by_role("region", name="Jury panel")
    expect(jury).to_contain_text("first-pairwise, second-pairwise")
    (reported,) = world.get(f"evaluations/{compared}/report")["juries"]
    pair = reported["comparison"]["pairs"][0]
    assert (pair["wins"], pair["ties"]) == (PROMPTS - 3, 3)
    jury.get_by_role("button", name="Remove").click()
    expect(jury).to_be_hidden()


@pytest.mark.long
def test_evaluation_pages_pass_axe_and_fit_a_phone(page: Page, compared: str, world: World, tmp_path: Path) -> None:
    for name in ("seen", "heard"):
        with judgments(tmp_path, name, PROMPTS).open("rb") as file:
            world.client.post(f"evaluations/{compared}/judgments", files={"file": file}).raise_for_status()
    jury = {"name": "both", "judges": ["seen-pairwise", "heard-pairwise"]}
    world.client.post(f"evaluations/{compared}/juries", json=jury).raise_for_status()
    faults: dict[str, Any] = {}
    tabs = [f"{compared}?tab={name}" for name in ("report", "answers", "people", "judges", "preferences", "gate")]
    page.goto("/p/default/evaluations")
    for path in ("", "/new", *(f"/{tab}" for tab in tabs), f"/{compared}?tab=judges&judge=seen-pairwise"):
        go(page, f"/p/default/evaluations{path}")
        page.get_by_role("heading", level=1).wait_for()
        faults |= faults_of(page, path)
    assert faults == {}, told(faults)
