"""A run in the browser: its pairs, of which some are read, marked and put into a new version; its samples by step."""

from __future__ import annotations

import re
from typing import Any

import pytest
from dashboard_world import World, preferences
from page_checks import faults_of, told
from playwright.sync_api import Locator, Page, expect

RECIPE = """
name: inspected
inputs:
  instructions: {type: dataset, kind: instructions}
  preferences: {type: dataset, kind: preferences}
  crossed: {type: dataset, kind: preferences}
stages:
  base: {run: base, source: "random:tiny-llama", vocabulary: 400, hidden: 32, layers: 1, heads: 2, max_length: 96}
  sft: {run: train, method: sft, model: base, data: $instructions, lr: 1.0e-3, batch: 8, max_steps: 2}
  dpo:
    run: train
    method: dpo
    model: sft
    data: $preferences
    batch: 8
    lr: 1.0e-2
    max_steps: 4
    epochs: 9
    evaluate_every: 2
    probe: {held_out: 0, prompts: ["What is bread?"], max_new_tokens: 16}
  reward: {run: train, method: reward_model, model: sft, data: $crossed, lr: 1.0e-3, batch: 8, max_steps: 2}
  online:
    run: train
    method: rloo
    model: sft
    data: $instructions
    rules: [{kind: regex, pattern: "[aeiou]"}]
    batch: 2
    answers: 4
    max_new_tokens: 8
    max_steps: 6
    epochs: 9
    lr: 1.0e-2
"""


@pytest.fixture(scope="module")
def run(world: World) -> dict[str, Any]:
    world.import_rows("compared", "preferences", preferences())
    # Every fourth pair has its sides swapped, so that a model has some on the wrong side.
    crossed = [row if number % 4 else swapped(row) for number, row in enumerate(preferences())]
    world.import_rows("crossed", "preferences", crossed)
    body = {"text": RECIPE, "set": ["instructions=things", "preferences=compared", "crossed=crossed"]}
    made = world.client.post("pipelines", json=body)
    made.raise_for_status()
    name = made.json()["name"]
    world.wait(lambda: world.get(f"pipelines/{name}")["state"] in ("succeeded", "failed"), "the pipeline")
    return stage(world, name, "dpo")


def stage(world: World, pipeline: str, name: str) -> dict[str, Any]:
    (run,) = [run for run in world.get(f"runs?pipeline={pipeline}")["items"] if run["name"] == name]
    assert run["state"] == "succeeded", run
    return dict(run)


def test_a_slider_goes_through_the_steps_with_the_words_marked_that_differ_from_the_start_model(
    page: Page, world: World, run: dict[str, Any]
) -> None:
    probes = world.get(f"runs/{run['id']}/probes")
    assert [step["step"] for step in probes["steps"]] == [0, 2, 4]
    before, _, last = (step["answers"][0]["text"] for step in probes["steps"])
    assert before != last
    page.goto(f"/p/default/runs/{run['id']}")
    page.get_by_role("tab", name="Samples").click()
    status = page.get_by_role("status").filter(has_text="Step 4")
    expect(status).to_be_visible()
    prompt = page.get_by_role("group", name="Prompt 1")
    expect(prompt).to_contain_text("What is bread?")
    texts = prompt.locator("pre.text")
    assert [text.strip() for text in texts.all_text_contents()[1:]] == [before.strip(), last.strip()]
    expect(prompt.locator("mark.own-chosen").first).to_be_visible()
    faults = faults_of(page, "samples")
    slider = page.get_by_role("slider", name="Step")
    slider.press("ArrowLeft")
    expect(page.get_by_role("status").filter(has_text="Step 2")).to_be_visible()
    slider.press("Home")
    expect(page.get_by_role("status").filter(has_text="Start model")).to_be_visible()
    expect(texts).to_have_count(2)
    expect(prompt.locator("mark")).to_have_count(0)
    assert not faults, told(faults)


@pytest.mark.long
def test_the_frontier_has_each_entrant_at_its_distance_or_the_reason_why_it_has_none(
    page: Page, world: World, run: dict[str, Any]
) -> None:
    sft, dpo, online, reward = (f"{run['pipeline']['name']}.{stage}" for stage in ("sft", "dpo", "online", "reward"))
    drawn = {"temperature": 1.0, "max_new_tokens": 12}
    body = {
        "name": "distances",
        "prompts": {"dataset": "compared", "split": "train", "limit": 10},
        "entrants": [
            {"model": sft, "name": "sft", "decoding": drawn, "samples": 4},
            {"model": dpo, "name": "dpo", "decoding": drawn, "samples": 2},
            {"model": dpo, "name": "greedy", "decoding": "greedy"},
            {"model": online, "name": "online", "decoding": drawn, "samples": 2},
            {"model": sft, "name": "best", "decoding": drawn, "best_of": 4, "reward": reward},
        ],
        "rewards": [reward],
        "kl_to": sft,
    }
    world.client.post("evaluations", json=body).raise_for_status()
    world.wait(lambda: not world.get("evaluations/distances")["unfinished"], "the evaluation")
    page.goto("/p/default/evaluations/distances?tab=report")
    page.get_by_role("region", name="Frontier").locator("summary").click()
    chart = page.get_by_role("group", name="Frontier").get_by_role("img")
    expect(chart).to_have_attribute("aria-label", re.compile(rf"^mean reward .* over KL to {re.escape(sft)}\. "))
    expect(chart).to_contain_text(f"KL to {sft} (nats)")
    expect(chart.locator(".frontier-entrant")).to_have_count(4)
    expect(chart.locator(".frontier-bound")).to_have_count(1)
    table = page.get_by_role("table", name="KL of the entrants")
    expect(table.get_by_role("row", name=re.compile("^sft the model itself 0.00"))).to_be_visible()
    expect(table.get_by_role("row", name=re.compile(r"^dpo −?\d+\.\d\d \[−?\d"))).to_be_visible()
    expect(table.get_by_role("row", name=re.compile("^greedy No estimate: its answers are greedy"))).to_be_visible()
    expect(table.get_by_role("row", name=re.compile("^best .* upper bound ≤ 0.64"))).to_be_visible()
    page.get_by_role("combobox", name="Measure against KL").click()
    page.get_by_role("option", name=re.compile("^win rate")).click()
    expect(chart).to_have_attribute("aria-label", re.compile("^win rate against sft"))
    # Only one of the entrants was trained on rewards of its own answers.
    training = page.get_by_role("group", name="Training curves", exact=True)
    expect(training.locator(".frontier-training")).to_have_count(1)
    expect(page.get_by_role("list", name="Runs").get_by_role("listitem")).to_have_text("online")
    training.locator(".frontier-training circle").last.hover()
    expect(page.get_by_text(re.compile(r"^online, step 6: reward \S+ at \S+ nats$"))).to_be_visible()
    page.get_by_text("The same as a table").click()
    steps = page.get_by_role("table", name="Training curves by step").locator("tbody tr")
    expect(steps).to_have_count(6)
    expect(steps.last).to_have_text(re.compile(r"^online6−?\d+\.\d{3}−?\d+\.\d{3}$"))
    faults = faults_of(page, "frontier")
    assert not faults, told(faults)


def test_a_range_of_margins_is_read_and_marked_pairs_are_flipped_in_a_new_version(
    page: Page, world: World, run: dict[str, Any]
) -> None:
    margins = [pair for pair in world.get(f"runs/{run['id']}/pairs/4") if pair["split"] == "train"]
    # The histogram is above the bar at the bottom, also where the costs have a line about a lost attempt.
    page.set_viewport_size({"width": 1280, "height": 1200})
    page.goto(f"/p/default/runs/{run['id']}")
    page.get_by_role("tab", name="Pairs").click()
    page.get_by_text(re.compile("^Trained on")).click()
    status = page.get_by_role("status").filter(has_text="wrong-sided")
    expect(status).to_contain_text(f"{len(margins)} in the range")
    box = page.get_by_test_id("margin-brush").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 1, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20, steps=4)
    page.mouse.up()
    lowest, highest = margins[0]["margin"], margins[-1]["margin"]
    told_range = page.get_by_text(re.compile("^Margins from")).inner_text().replace("−", "-")
    low, high = (float(number) for number in re.findall(r"-?\d+\.\d+", told_range))
    span = highest - lowest
    assert (low, high) == pytest.approx((lowest, lowest + span / 2), abs=0.02 * span + 0.001)
    # Both ends are given in thousandths.
    fewest, most = (sum(low - by <= pair["margin"] <= high + by for pair in margins) for by in (-5e-4, 5e-4))
    expect(status).to_contain_text(re.compile(rf"; ({'|'.join(map(str, range(fewest, most + 1)))}) in the range"))
    row = next(pair["row"] for pair in margins if low + 5e-4 < pair["margin"] < high - 5e-4)
    inside = page.get_by_role("group", name=f"Row {row}", exact=True)
    expect(inside.locator("pre span[title$='nats']").first).to_be_visible()
    inside.get_by_text("Flip").click()
    expect(page.get_by_text("0 to drop, 1 to flip")).to_be_visible()
    faults = faults_of(page, "pairs")
    page.get_by_role("button", name="New dataset version").click()
    page.get_by_role("link", name="Open the dataset").click()
    expect(page.get_by_text("edited from compared")).to_be_visible()
    assert not faults, told(faults)


def of_row(page: Page, row: int) -> Locator:
    return page.get_by_role("group", name=f"Row {row}", exact=True)


@pytest.mark.parametrize("mark", ["flip", "drop"])
def test_all_wrong_sided_pairs_are_marked_at_once_and_one_other_is_dropped_in_a_new_version(
    page: Page, world: World, run: dict[str, Any], mark: str
) -> None:
    reward = stage(world, run["pipeline"]["name"], "reward")
    margins = [pair for pair in world.get(f"runs/{reward['id']}/pairs/2") if pair["split"] == "train"]
    wrong = {pair["row"] for pair in margins if pair["margin"] < 0}
    assert wrong
    page.goto(f"/p/default/runs/{reward['id']}")
    page.get_by_role("tab", name="Pairs").click()
    page.get_by_text(re.compile("^Trained on")).click()
    status = page.get_by_role("status").filter(has_text="wrong-sided")
    expect(status).to_contain_text(f"{len(wrong)} of {len(margins)} pairs")
    page.get_by_role("button", name="Wrong-sided only").click()
    expect(status).to_contain_text(f"{len(wrong)} in the range")
    cards = page.get_by_role("group", name=re.compile(r"^Row \d+$"))
    expect(cards).to_have_count(min(len(wrong), 10))
    expect(cards.filter(has_text="wrong-sided")).to_have_count(min(len(wrong), 10))
    page.get_by_role("button", name=f"Mark {len(wrong)} wrong-sided: {mark}").click()
    flipped, dropped = (wrong, set()) if mark == "flip" else (set(), wrong)
    expect(page.get_by_text(f"{len(dropped)} to drop, {len(flipped)} to flip")).to_be_visible()
    marked = cards.first.get_by_role("radiogroup", name=re.compile("^Mark row"))
    expect(marked.get_by_role("radio", name=mark.capitalize())).to_be_checked()

    page.get_by_role("button", name="All", exact=True).click()
    other = next(pair["row"] for pair in margins if pair["margin"] >= 0)
    more = page.get_by_role("button", name=re.compile("^Show more"))
    while not of_row(page, other).count():
        more.click()
    of_row(page, other).get_by_text("Drop", exact=True).click()
    dropped = dropped | {other}
    expect(page.get_by_text(f"{len(dropped)} to drop, {len(flipped)} to flip")).to_be_visible()
    page.get_by_role("button", name="New dataset version").click()
    page.get_by_role("link", name="Open the dataset").click()
    expect(page.get_by_text("edited from crossed")).to_be_visible()
    before, after = samples(world, "crossed"), samples(world, page.url.rpartition("/")[2].partition("?")[0])
    kept = [swapped(sample) if row in flipped else sample for row, sample in enumerate(before) if row not in dropped]
    assert after == kept


def samples(world: World, dataset: str) -> list[dict[str, Any]]:
    items = sorted(world.get(f"datasets/{dataset}/samples?limit=100")["items"], key=lambda row: int(row["row"]))
    return [{name: row["sample"][name] for name in ("prompt", "chosen", "rejected")} for row in items]


def swapped(sample: dict[str, Any]) -> dict[str, Any]:
    return {**sample, "chosen": sample["rejected"], "rejected": sample["chosen"]}
