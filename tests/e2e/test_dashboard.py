"""What people do in the browser, on the real API, database, broker and worker."""

from __future__ import annotations

import json
import os
import re
import signal
from typing import Any

import pytest
from dashboard_world import World, follow, preferences
from page_checks import faults_of, go, told
from page_fields import choose
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import text

from steerboard.platform.database import make_engine
from steerboard.platform.processes.embedded import EmbeddedServers


def test_a_link_signs_in_once_and_signing_out_ends_it(world: World, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    link = world.sign_in_link()
    follow(page, link)
    expect(page.get_by_role("heading", name="Home")).to_be_visible()
    page.get_by_role("button", name=re.compile("Signed in as")).click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in to Steerboard")).to_be_visible()
    page.goto(f"{world.url}/p/default/runs")
    expect(page).to_have_url(re.compile(r"/sign-in\?back="))
    page.goto(link)
    expect(page.get_by_role("alert")).to_contain_text("This link was used or has expired")
    context.close()


def test_the_best_of_several_answers_is_entered_by_choosing_who_chooses(
    page: Page, world: World, pipeline: str
) -> None:
    body = {"name": "chosen", "prompts": {"dataset": "things", "split": "all", "limit": 2}}
    world.client.post("evaluations", json=body).raise_for_status()
    page.goto("/p/default/evaluations/chosen?tab=answers")
    page.get_by_role("button", name="Add an entrant").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("combobox", name="Who answers").click()
    page.get_by_role("option", name=re.compile(rf"^{pipeline}\.sft ")).click()
    dialog.get_by_role("combobox", name="Keep the best by").click()
    page.get_by_role("option", name=f"{pipeline}.reward").click()
    number = dialog.get_by_label("Answers per prompt")
    expect(number).to_have_value("8")
    expect(dialog.get_by_text("16 answers will be made.")).to_be_visible()
    number.fill("1")
    dialog.get_by_role("button", name="Generate answers").click()
    expect(number).to_have_accessible_description(re.compile("greater than or equal to 2"))
    number.fill("2")
    dialog.get_by_role("combobox", name="Decoding").click()
    page.get_by_role("option", name="greedy, temperature 0").click()
    dialog.get_by_role("button", name="Generate answers").click()
    decoding = dialog.get_by_role("combobox", name="Decoding")
    expect(decoding).to_have_accessible_description(re.compile("needs a temperature above 0"))
    decoding.click()
    page.get_by_role("option", name="usual").click()
    dialog.get_by_role("button", name="Generate answers").click()
    expect(dialog).to_be_hidden()
    entrant = page.get_by_role("table", name="Entrants").get_by_role("row").filter(has_text=f"{pipeline}.sft_best_of_2")
    expect(entrant).to_contain_text(f"best of 2 by {pipeline}.reward, sampled, temperature 1")


@pytest.mark.long
def test_a_cancelled_run_says_so(page: Page, world: World, pipeline: str) -> None:
    page.goto("/p/default/launch/sft")
    choose(page, "model", rf"^{pipeline}\.sft")
    choose(page, "data", "^things")
    page.get_by_role("textbox", name="epochs", exact=True).fill("5000")
    page.get_by_role("textbox", name="lr", exact=True).fill("quick")
    expect(page.get_by_text("not a number")).to_be_visible()
    expect(page.get_by_role("button", name="Launch")).to_be_disabled()
    page.get_by_role("textbox", name="lr", exact=True).fill("1e-3")
    page.get_by_role("textbox", name="batch", exact=True).fill("4")
    page.get_by_role("textbox", name="Name", exact=True).fill("endless")
    page.get_by_role("button", name="Launch").click()
    expect(page.get_by_role("heading", name="endless")).to_be_visible()
    expect(page.get_by_text("running", exact=True)).to_be_visible()
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("button", name="Cancel the run").click()
    expect(page.locator(".state-badge").first).to_have_text("cancelled")
    page.get_by_role("tab", name="Timeline").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("cancelled")


@pytest.mark.long
def test_a_killed_workers_run_shows_the_reason_and_goes_on(page: Page, world: World, pipeline: str) -> None:
    config = {"run": "train", "method": "sft", "lr": 1e-3, "batch": 4, "epochs": 60, "checkpoint_every": 20}
    body = {"name": "struck", "config": config, "inputs": {"model": f"{pipeline}.sft", "data": "things"}}
    run = world.client.post("runs", json=body).json()["id"]
    page.goto(f"/p/default/runs/{run}")
    world.wait(lambda: len(world.get(f"runs/{run}/metrics?name=loss")) > 0, "the first step")
    os.kill(world.worker_pid(), signal.SIGKILL)
    page.get_by_role("tab", name="Timeline").click()
    expect(page.get_by_role("tabpanel")).to_contain_text(re.compile("lease|worker"))
    expect(page.locator(".state-badge").first).to_have_text("succeeded")
    expect(page.get_by_text(re.compile("^[12] of at most 10$"))).to_be_visible()  # a busy machine may lose it twice


def test_runs_are_compared_by_curves_settings_and_results(page: Page, pipeline: str) -> None:
    page.goto("/p/default/runs?kind=%5B%22train%22%5D")
    table = page.get_by_role("table", name="Runs, the newest first")
    for name in ("mle", "dt"):
        table.locator(f"tr[data-run={name}]").last.get_by_role("checkbox").check()
    page.get_by_role("button", name="Compare 2").click()
    expect(page.get_by_role("img", name=re.compile("^loss over step"))).to_be_visible()
    # The cost of both by phase, on one scale.
    cost = page.locator("section", has=page.get_by_role("heading", name="Cost", exact=True))
    bars = cost.get_by_role("img", name=re.compile(r"device time; .*update .*tokens"))
    expect(bars).to_have_count(2)
    page.get_by_text("Device time and tokens of each phase").click()
    expect(page.get_by_role("table", name="Cost of the runs by phase").get_by_role("row")).to_contain_text(
        ["Phase", "load", "update", "evaluate", "checkpoint", "idle", "all phases"]
    )
    settings = page.get_by_role("table", name="Settings and results of the runs")
    expect(settings.get_by_role("row", name=re.compile("^threshold"))).to_contain_text("0")
    expect(settings.get_by_role("row", name=re.compile("^batch"))).to_have_count(0)
    expect(settings.get_by_role("row", name=re.compile("^truncated rows"))).to_have_count(0)
    page.get_by_role("switch", name="Show equal values too").click()
    expect(settings.get_by_role("row", name=re.compile("^truncated rows"))).to_have_count(1)
    expect(settings.get_by_role("row", name=re.compile(r"^batch \d"))).to_have_count(1)
    # As a person reads them.
    expect(settings.get_by_role("row", name=re.compile("memory measured"))).to_contain_text(re.compile(r"\d [MG]B"))
    page.reload()
    expect(settings).to_be_visible()
    # The methods of a pipeline, as its report has them.
    page.goto(f"{page.url}&pipeline=%5B%22{pipeline}%22%5D")
    methods = page.get_by_role("region", name=f"Methods of {pipeline}")
    headline = page.request.get(f"/api/v1/projects/default/pipelines/{pipeline}/report").json()["report"]["headline"]
    expect(methods).to_contain_text(headline["text"])
    expect(methods.get_by_role("table", name="Entrants by every source").get_by_role("row")).not_to_have_count(1)


def test_a_pipeline_is_launched_again_with_its_inputs_and_a_tab_is_an_address(page: Page, pipeline: str) -> None:
    page.goto(f"/p/default/pipelines/{pipeline}?tab=stages")
    expect(page.get_by_role("table", name="Stages")).to_be_visible()
    page.get_by_role("link", name="Launch it again").click()
    expect(page.get_by_role("heading", name=f"Launch {pipeline} again")).to_be_visible()
    expect(page.get_by_role("main").get_by_label(re.compile("^instructions"))).to_have_value(re.compile("^things"))
    expect(page.get_by_role("button", name="Launch", exact=True)).to_be_enabled()
    page.go_back()
    expect(page).to_have_url(re.compile("tab=stages"))


def test_a_recipe_offers_the_models_that_fit_and_no_others(page: Page, pipeline: str) -> None:
    page.goto("/p/default/launch?recipe=offline-rlhf")
    page.get_by_role("combobox", name="base").click()
    expect(page.get_by_role("option", name=re.compile(rf"^{pipeline}\.sft"))).to_be_visible()
    expect(page.get_by_role("option", name=re.compile(rf"^{pipeline}\.reward"))).to_have_count(0)


@pytest.mark.parametrize(
    ("path", "heading"),
    [
        ("/p/default/runs/nothing", "Run not found"),
        ("/p/default/nothing", "No such page"),
        ("/nothing", "No such page"),
        ("/p/nothing", "No such project"),
    ],
)
def test_an_address_that_leads_nowhere_says_so(page: Page, path: str, heading: str) -> None:
    page.goto(path)
    expect(page.get_by_role("heading", level=1, name=heading)).to_be_visible()
    expect(page).to_have_title(f"{heading} · Steerboard")


def test_the_filter_preview_says_what_a_threshold_keeps(page: Page, pipeline: str) -> None:
    page.goto("/p/default/launch/mle_filter")
    choose(page, "data", rf"^{pipeline}\.labelled")
    kept = page.get_by_text(re.compile(r"training rows \([\d.]+%\) have a reward above 0\.00 z"))
    expect(kept).to_be_visible()
    page.get_by_label("threshold", exact=True).fill("-50")
    expect(page.get_by_text("(100.0%)")).to_be_visible()
    page.get_by_label("threshold", exact=True).fill("50")
    expect(page.get_by_text("(0.0%)")).to_be_visible()


@pytest.mark.long
def test_a_benchmark_is_launched_from_a_models_page_and_unfolds_there(page: Page, world: World, pipeline: str) -> None:
    subsets = ("alpacaeval-easy", "mt-bench-easy", "of-our-own")
    rows = [{**row, "subset": subsets[number % 3]} for number, row in enumerate(preferences())]
    world.import_rows("bench", "preferences", rows)
    page.goto(f"/p/default/models/{pipeline}.reward")
    page.get_by_role("link", name="Benchmark it").click()
    expect(page.get_by_role("main").get_by_label(re.compile("^reward"))).to_have_value(
        re.compile(f"^{pipeline}.reward")
    )
    choose(page, "pairs", "^bench")
    page.get_by_role("button", name="Launch", exact=True).click()
    expect(page.locator(".state-badge").first).to_have_text("succeeded")
    result = page.get_by_role("tabpanel", name="Result")
    expect(result).to_contain_text("of 40 pairs")
    expect(result).to_contain_text("No subset of RewardBench: of-our-own.")
    expect(result.get_by_role("table", name=re.compile("^Accuracy by subset"))).to_contain_text("alpacaeval-easy")
    page.goto(f"/p/default/models/{pipeline}.reward")
    table = page.get_by_role("table", name="Benchmarks of the model, the newest first")
    expect(table.get_by_role("row", name=re.compile("^bench"))).to_be_visible()
    expect(page.get_by_text("Chat lacks")).to_have_count(0)
    table.get_by_role("button", name="Show the subsets of bench").click()
    expect(page.get_by_text("Chat lacks alpacaeval-length, alpacaeval-hard, mt-bench-med.")).to_be_visible()


@pytest.mark.parametrize("role", ["viewer", "annotator"])
def test_a_role_is_offered_what_it_may_do_and_refused_the_rest(
    world: World, browser: Browser, pipeline: str, role: str
) -> None:
    context = browser.new_context(base_url=world.url)
    page = context.new_page()
    follow(page, world.invite(f"a-{role}", role))
    navigation = page.get_by_role("navigation", name="Places")
    csrf = page.request.get("/api/v1/session").json()["csrf_token"]
    refused = page.request.post("/api/v1/projects/default/pipelines/x/cancel", headers={"X-CSRF-Token": csrf})
    assert refused.status == 403
    if role == "viewer":
        expect(navigation.get_by_role("link", name="Runs")).to_be_visible()
        expect(navigation.get_by_role("link", name="Launch")).to_have_count(0)
        page.goto(f"/p/default/pipelines/{pipeline}")
        expect(page.get_by_role("table", name="Entrants by every source")).to_be_visible()
        expect(page.get_by_text("Launch it again")).to_have_count(0)
    else:
        # Other tests may have campaigns open.
        expect(
            page.get_by_role("heading", name=re.compile("^(Annotate|Nothing is waiting for you)$")).first
        ).to_be_visible()
        expect(navigation.get_by_role("link")).to_have_count(0)
        assert page.request.get("/api/v1/projects/default/runs").status == 403
    context.close()


PAGES = (
    "",
    "/runs",
    "/pipelines",
    "/launch",
    "/launch?recipe=demo",
    "/launch/mle_filter",
    "/launch/benchmark",
    "/compare",
    "/playground",
    "/datasets",
    "/imports",
    "/models",
    "/queue",
    "/settings/members",
    "/settings/tokens",
    "/settings/account",
    "/settings/audit",
    "/settings/notices",
    "/settings/project",
)


@pytest.mark.long
def test_every_page_passes_axe_and_fits_a_phone(page: Page, pipeline: str, world: World) -> None:
    run = next(r["id"] for r in world.get(f"runs?pipeline={pipeline}")["items"] if r["name"] == "dt")
    deep = (
        f"/pipelines/{pipeline}",
        f"/pipelines/{pipeline}?tab=stages",
        f"/compare?runs=%5B%22{run}%22%5D",
        f"/evaluations/{pipeline}.report?tab=report",
        f"/runs/{run}",
        f"/datasets/{pipeline}.labelled",
        f"/datasets/{pipeline}.labelled?view=statistics",
        "/datasets/pairs?row=1",
        f"/models/{pipeline}.dt",
        f"/models/{pipeline}.reward",
    )
    faults: dict[str, Any] = {}
    page.goto("/p/default")
    for path in (*PAGES, *deep):
        go(page, f"/p/default{path}")
        page.get_by_role("heading", level=1).wait_for()
        faults |= faults_of(page, path)
    assert faults == {}, told(faults)


@pytest.mark.long
def test_adapters_are_learned_from_the_form_that_tells_the_memory_first(
    page: Page, world: World, pipeline: str
) -> None:
    page.goto("/p/default/launch/sft")
    choose(page, "model", rf"^{pipeline}\.sft")
    choose(page, "data", "^things")
    expect(page.get_by_text(re.compile("Pool default: about .* of memory in each process, of"))).to_be_visible()
    expect(page.get_by_text("Pool interactive")).to_have_count(0)  # the playground's worker takes no runs
    page.get_by_role("textbox", name="max_steps", exact=True).fill("3")
    page.get_by_role("textbox", name="batch", exact=True).fill("4")
    expect(page.get_by_role("textbox", name="lora.rank", exact=True)).to_have_count(0)
    page.get_by_role("switch", name=re.compile(r"^lora(?!\.)")).check(force=True)
    page.get_by_role("textbox", name="lora.rank", exact=True).fill("0")
    expect(page.get_by_text("at least 1")).to_be_visible()
    page.get_by_role("textbox", name="lora.rank", exact=True).fill("2")
    page.get_by_role("switch", name=re.compile(r"^lora\.merge")).uncheck(force=True)
    page.get_by_role("textbox", name="Name", exact=True).fill("adapted")
    page.get_by_role("button", name="Launch").click()
    expect(page.locator(".state-badge").first).to_have_text("succeeded")
    run = page.url.rpartition("/")[2].partition("?")[0]
    made = world.get(f"runs/{run}")
    assert (made["config"]["lora"]["rank"], made["config"]["lora"]["merge"]) == (2, False)
    (model,) = [output["label"] for output in made["outputs"]]
    page.goto(f"/p/default/models/{model}")
    expect(page.get_by_text("LoRA of rank 2, over its base")).to_be_visible()


def test_what_did_not_fit_is_retried_with_what_does_in_one_click(page: Page, world: World, pipeline: str) -> None:
    config = {"run": "train", "method": "sft", "batch": 16, "micro_tokens": 4096}
    body = {
        "name": "large",
        "pool": "nobody",
        "config": config,
        "inputs": {"model": f"{pipeline}.sft", "data": "things"},
    }
    run = world.client.post("runs", json=body).json()["id"]
    world.client.post(f"runs/{run}/cancel").raise_for_status()
    fix = {"changes": {"micro_tokens": 192}, "says": "micro-batch 2, accumulation 8, gradient checkpointing"}
    error = {"code": "out_of_memory", "detail": "It does not fit.", "hint": f"Try {fix['says']}.", "errors": []}
    with make_engine(EmbeddedServers(world.home).database_url).begin() as connection:
        statement = text("UPDATE runs SET error = CAST(:error AS jsonb), state = 'failed' WHERE id = :run")
        connection.execute(statement, {"error": json.dumps(error | {"fix": fix}), "run": run})
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"/p/default/runs/{run}")
    retry = page.get_by_role("button", name="Retry with micro-batch 2, accumulation 8, gradient checkpointing")
    box = retry.bounding_box()
    assert box
    assert box["x"] + box["width"] <= 390
    retry.click()
    expect(page.locator(".state-badge").first).to_have_text("queued")
    retried = world.get(f"runs/{run}")
    assert (retried["config"]["micro_tokens"], retried["error"]) == (192, None)
    world.client.post(f"runs/{run}/cancel").raise_for_status()
