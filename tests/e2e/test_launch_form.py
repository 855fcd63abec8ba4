"""Launch forms: typed values stay and a fault is shown at its field; the button stays where it is."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from dashboard_world import RECIPE, World, instructions
from page_checks import faults_of, told
from page_fields import choose
from playwright.sync_api import Locator, Page, Route, expect


@pytest.fixture
def form(page: Page, world: World) -> Page:
    """The recipe `small` with its inputs chosen and the stage `sft` open."""
    page.goto("/p/default/launch?recipe=demo")
    page.get_by_role("tab", name="YAML").click()
    page.get_by_label("The recipe as YAML").fill(RECIPE)
    choose(page, "instructions", "^things")
    choose(page, "preferences", "^pairs")
    page.get_by_role("tab", name="Stages").click()
    page.get_by_role("button", name=re.compile("^sft")).click()
    expect(page.get_by_role("textbox", name="lr", exact=True)).to_be_visible()
    return page


def test_a_value_that_does_not_parse_is_corrected_where_it_was_typed(form: Page) -> None:
    launch = form.get_by_role("button", name="Launch", exact=True)
    rate = form.get_by_role("textbox", name="lr", exact=True)
    for typed in ("fast", "[1", "x" * 10_001):
        expect(launch).to_be_enabled()
        rate.fill(typed)
        expect(launch).to_be_disabled()
        expect(rate).to_have_value(typed)
        for stage in ("base", "sft", "reward", "dt", "report"):
            expect(form.get_by_role("button", name=re.compile(f"^{stage}"))).to_be_visible()
        if len(typed) < 10:
            expect(form.get_by_text("Correct sft.lr first.")).to_be_visible()
            described = rate.evaluate("field => field.closest('.mantine-InputWrapper-root').innerText")
            assert re.search("valid", described)
        rate.fill("1e-4")
        expect(launch).to_be_enabled()
        expect(form.get_by_role("alert")).to_have_count(0)
        rate.fill("")


def test_a_fault_in_the_yaml_is_named_beside_the_stages(form: Page) -> None:
    form.get_by_role("tab", name="YAML").click()
    yaml = form.get_by_label("The recipe as YAML")
    yaml.fill(RECIPE.replace("size: 120", "size: many"))
    expect(form.get_by_role("alert")).to_contain_text("stages.mixture.size (line ")
    form.get_by_role("tab", name="Stages").click()
    expect(form.get_by_role("textbox", name="lr", exact=True)).to_be_visible()
    form.get_by_role("button", name=re.compile("^mixture")).click()
    form.get_by_role("textbox", name="size", exact=True).fill("60")
    expect(form.get_by_role("button", name="Launch", exact=True)).to_be_enabled()
    form.get_by_role("tab", name="YAML").click()
    yaml.fill("stages: [")
    expect(form.get_by_role("alert")).to_contain_text("not valid YAML")
    yaml.fill(RECIPE)
    expect(form.get_by_role("button", name="Launch", exact=True)).to_be_enabled()


def test_a_fault_leads_to_its_line_which_is_marked(form: Page) -> None:
    form.get_by_role("tab", name="YAML").click()
    yaml = form.get_by_label("The recipe as YAML")
    yaml.fill("# one more line\n" + RECIPE.replace("size: 120", "size: many"))
    form.get_by_role("tab", name="Stages").click()
    form.get_by_role("alert").get_by_role("button", name=re.compile("^stages.mixture.size")).click()
    expect(yaml).to_be_focused()
    expect(form.locator(".cm-lintRange-error")).to_have_text("size: many")
    expect(form.locator(".cm-lint-marker-error")).to_have_count(1)
    faults = faults_of(form, "recipe-yaml")
    assert not faults, told(faults)
    # What is typed comes to where the fault is.
    form.keyboard.type("batch")
    expect(form.locator(".cm-activeLine")).to_contain_text("batchsize: many")
    form.keyboard.press("Control+z")
    expect(yaml).not_to_contain_text("batchsize")
    yaml.fill("name: x\nstages: [")
    form.get_by_role("alert").get_by_role("button", name=re.compile("^line [12]$")).click()
    expect(form.locator(".cm-lintRange-error")).to_be_visible()


def test_the_editor_of_a_recipe_lets_the_keyboard_go(form: Page) -> None:
    form.get_by_role("tab", name="YAML").click()
    yaml = form.get_by_label("The recipe as YAML")
    yaml.fill("name: x")
    form.keyboard.press("Tab")
    expect(yaml).to_be_focused()
    form.keyboard.press("Escape")
    form.keyboard.press("Tab")
    expect(yaml).not_to_be_focused()
    assert "Escape" in yaml.evaluate(
        "field => document.getElementById(field.getAttribute('aria-describedby')).innerText"
    )
    yaml.focus()
    form.keyboard.press("Control+f")
    expect(form.get_by_role("textbox", name="Find")).to_be_focused()
    faults = faults_of(form, "recipe-yaml-search")
    assert not faults, told(faults)


@pytest.mark.long
def test_a_setting_of_a_stage_that_was_renamed_can_be_cleared(form: Page) -> None:
    form.get_by_role("textbox", name="lr", exact=True).fill("1e-4")
    form.get_by_role("tab", name="YAML").click()
    form.get_by_label("The recipe as YAML").fill(
        re.sub(r"\bsft(?=:|,|\])", "tuned", RECIPE).replace("method: tuned", "method: sft")
    )
    lost = form.get_by_role("textbox", name="sft.lr", exact=True)
    expect(form.get_by_text("the recipe has no input or stage `sft`")).to_be_visible()
    lost.fill("")
    expect(form.get_by_role("button", name="Launch", exact=True)).to_be_enabled()


@pytest.mark.long
def test_a_field_that_goes_takes_along_what_the_page_had_put_in(page: Page, world: World) -> None:
    if not (known := [dataset for dataset in world.get("datasets")["items"] if dataset["kind"] == "prompts"]):
        world.import_rows("asked", "prompts", [{"prompt": row["prompt"]} for row in instructions()])
    assert len(known) < 2, "the page puts in the only one there is"
    page.goto("/p/default/launch?recipe=demo")
    field = page.get_by_role("combobox", name="prompts", exact=True)
    expect(field).not_to_have_value("")
    choose(page, "instructions", "^things")
    choose(page, "preferences", "^pairs")
    page.get_by_role("tab", name="YAML").click()
    page.get_by_label("The recipe as YAML").fill(RECIPE)
    expect(field).to_be_hidden()
    expect(page.get_by_role("button", name="Launch", exact=True)).to_be_enabled()


def test_a_base_model_may_be_typed_and_what_is_wrong_with_it_stands_at_the_field(page: Page, world: World) -> None:
    page.goto("/p/default/launch?recipe=offline-rlhf")
    choose(page, "preferences", "^pairs")
    launch = page.get_by_role("button", name="Launch", exact=True)
    base = page.get_by_role("combobox", name="base")
    for typed, wrong in (
        ("./no such folder", "there is no folder './no such folder'"),
        ("/etc", "there is no folder '/etc'"),
        ("nobody", "there is no model `nobody`"),
    ):
        base.fill(typed)
        said = base.locator("xpath=ancestor::*[contains(@class,'mantine-InputWrapper-root')]")
        expect(said).to_contain_text(wrong)
        expect(launch).to_be_disabled()
    for typed in ("org/name@main", "random:tiny-llama"):
        base.fill(typed)
        expect(launch).to_be_enabled()
        expect(base).not_to_have_attribute("aria-invalid", "true")
    # One that was chosen hides no other: the list is whole again.
    base.click()
    expect(page.get_by_role("option", name="random:tiny-llama")).to_be_visible()


def test_a_refused_input_says_why_at_its_field(page: Page) -> None:
    page.goto("/p/default/launch/base")
    page.get_by_role("textbox", name="source", exact=True).fill("random:tiny-llama")
    said = page.get_by_label("data.0").locator("xpath=ancestor::*[contains(@class,'mantine-InputWrapper-root')]")
    expect(said).to_contain_text("the tokenizer of a random model is trained on it")
    expect(page.get_by_text("Correct data.0 first.")).to_be_visible()
    expect(page.get_by_text("cannot be started")).to_have_count(0)
    page.get_by_role("textbox", name="source", exact=True).fill("org/name")
    expect(said).not_to_contain_text("trained on it")
    expect(page.get_by_role("button", name="Launch", exact=True)).to_be_enabled()


def test_a_page_puts_in_nothing_before_it_knows_all_that_there_is(page: Page, world: World) -> None:
    body = {"name": "alone", "base_url": "https://models.example/v1", "model": "m"}
    world.client.post("endpoints", json=body).raise_for_status()

    def only_first(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json()[:1])

    page.route("**/endpoints", only_first)
    arrive = hold(page, "**/models?*")
    with page.expect_response("**/endpoints"):
        page.goto("/p/default/launch/academic")
    field = page.get_by_role("main").get_by_label(re.compile("^model"))
    expect(field).to_be_visible()
    page.wait_for_timeout(300)
    expect(field).to_have_value("")
    arrive()
    world.client.delete("endpoints/alone").raise_for_status()


def test_an_endpoint_is_chosen_where_the_model_is_and_a_clone_has_it_again(page: Page, world: World) -> None:
    world.client.post(
        "endpoints", json={"name": "served", "base_url": "https://models.example/v1", "model": "m"}
    ).raise_for_status()
    page.goto("/p/default/launch/academic")
    launch = page.get_by_role("button", name="Launch", exact=True)
    field = page.get_by_role("main").get_by_label(re.compile("^model"))
    field.click()
    page.get_by_role("option", name="served · endpoint").click()
    # The suite has tasks that an endpoint cannot be asked.
    expect(page.get_by_role("alert")).to_contain_text("compare log-probs of given answers")
    expect(launch).to_be_disabled()
    page.get_by_role("button", name=re.compile("^Devices and precision")).click()
    expect(page.get_by_label("vllm.max_model_len")).to_be_visible()
    expect(page.get_by_role("textbox", name="endpoint", exact=True)).to_have_count(0)
    body = {"config": {"run": "academic", "tasks": ["gsm8k"]}, "inputs": {"model": "served"}, "pool": "nobody"}
    first = world.client.post("runs", json=body)
    first.raise_for_status()
    page.goto(f"/p/default/launch/academic?from={first.json()['name']}")
    expect(page.get_by_role("main").get_by_label(re.compile("^model"))).to_have_value("served · endpoint")
    launch.click()
    page.wait_for_url("**/runs/*")
    newest = world.get("runs")["items"][0]
    config = world.get(f"runs/{newest['id']}")["config"]
    assert (newest["name"] != first.json()["name"], config["endpoint"], config["tasks"]) == (True, "served", ["gsm8k"])


WINDOWS = pytest.mark.parametrize("window", [(1440, 900), pytest.param((390, 844), marks=pytest.mark.long)])


def hold(page: Page, address: str) -> Callable[[], None]:
    """Lets no answer from the address through until what is returned is called."""
    held: list[Route] = []
    page.route(address, lambda route: held.append(route))

    def release() -> None:
        for route in held:
            route.continue_()
        page.unroute(address)

    return release


def middle(button: Locator) -> tuple[float, float]:
    box = button.bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def press(page: Page, button: Locator) -> tuple[float, float]:
    """The mouse goes down on the middle of the button, and stays there. Returns where."""
    button.scroll_into_view_if_needed()
    place = middle(button)
    page.mouse.move(*place)
    page.mouse.down()
    return place


@WINDOWS
def test_a_press_counts_while_the_estimate_arrives(page: Page, world: World, window: tuple[int, int]) -> None:
    page.set_viewport_size({"width": window[0], "height": window[1]})
    arrive = hold(page, "**/runs/estimate")
    page.goto("/p/default/launch/base")
    with page.expect_request("**/runs/estimate"):
        page.get_by_role("textbox", name="source", exact=True).fill("some-org/some-model")
    launch = page.get_by_role("button", name="Launch", exact=True)
    expect(launch).to_be_enabled()
    before = press(page, launch)
    arrive()
    expect(page.get_by_text("No estimate: ").or_(page.get_by_text("of device time"))).to_be_visible()
    assert abs(middle(launch)[1] - before[1]) < 2  # pressed, it gives way by one pixel; layouts round
    page.mouse.up()
    expect(page).to_have_url(re.compile("/runs/"))
    run = page.url.rpartition("/")[2].partition("?")[0]
    assert world.get(f"runs/{run}")["config"]["source"] == "some-org/some-model"


@WINDOWS
def test_a_press_counts_while_the_recipe_is_read(form: Page, window: tuple[int, int]) -> None:
    form.set_viewport_size({"width": window[0], "height": window[1]})
    launch = form.get_by_role("button", name="Launch", exact=True)
    expect(launch).to_be_enabled()
    form.get_by_role("switch", name=re.compile("^Reuse")).click()
    form.get_by_role("tab", name="YAML").click()
    arrive = hold(form, "**/recipes/*")
    added = "  again: {run: train, method: sft, model: base, data: $instructions, max_steps: 1}\n"
    with form.expect_request("**/recipes/*"):
        form.get_by_label("The recipe as YAML").fill(RECIPE.replace("name: small", "name: pressed") + added)
    form.get_by_role("tab", name="Stages").click()
    before = press(form, launch)
    arrive()
    expect(form.get_by_role("button", name=re.compile("^again"))).to_be_visible()
    assert abs(middle(launch)[1] - before[1]) < 2  # pressed, it gives way by one pixel; layouts round
    form.mouse.up()
    expect(form.get_by_role("heading", name=re.compile("^pressed-"))).to_be_visible()


def test_settings_are_found_by_name_or_description_and_counted_by_topic(page: Page, world: World) -> None:
    page.goto("/p/default/launch/sft")
    box = page.get_by_role("searchbox", name="Find a setting")
    box.fill("squared gradient")
    beta = page.get_by_role("textbox", name="adam_beta2", exact=True)
    expect(beta).to_be_visible()
    expect(page.get_by_role("textbox", name="lr", exact=True)).to_have_count(0)
    beta.fill("none")
    faults = faults_of(page, "settings-found")
    assert not faults, told(faults)
    box.fill("no such setting")
    expect(page.get_by_text("No setting has these words")).to_be_visible()
    box.fill("")
    optimiser = page.get_by_role("button", name=re.compile("^Optimiser"))
    expect(optimiser).to_have_attribute("aria-expanded", "false")
    expect(optimiser).to_contain_text("1 changed")
    expect(optimiser).to_contain_text("1 to correct")
    optimiser.click()
    expect(beta).to_have_value("none")
    faults = faults_of(page, "settings-by-topic")
    assert not faults, told(faults)


def test_a_teacher_is_asked_for_next_to_the_student(page: Page, world: World) -> None:
    page.goto("/p/default/launch/distillation")
    main = page.get_by_role("main")
    expect(main.get_by_role("heading", level=1)).to_contain_text("distillation")
    for name in ("model", "teacher", "data"):
        expect(main.get_by_role("combobox", name=re.compile(f"^{name}"))).to_be_visible()
    expect(main.get_by_role("combobox", name=re.compile("^divergence"))).to_have_value("reverse_kl")
    for name in ("on_policy", "alpha"):
        expect(main.get_by_label(re.compile(f"^{name}"))).to_be_visible()
    expect(main.get_by_role("button", name=re.compile("^Launch"))).to_be_disabled()


def test_the_parts_of_a_policy_loss_are_fields_with_help_and_their_papers(page: Page, world: World) -> None:
    page.goto("/p/default/launch/gspo")
    for topic in ("Loss", "Optimiser", "Off-policy correction"):
        page.get_by_role("button", name=re.compile(f"^{topic}")).click()
    for name, default in (("clip_low", "3e-4"), ("clip_high", "4e-4"), ("minibatches", "4")):
        field = page.get_by_role("textbox", name=name, exact=True)
        expect(field).to_be_visible()
        expect(field).to_have_value(default, timeout=5_000)
    text = page.get_by_role("main").inner_text()
    for words in (
        "Answers whose ratio is below 1 minus this teach nothing more",
        "arXiv 2507.18071, Section 5.1",
        "all tokens of an answer the geometric mean of these",
        "the further a ratio is from 1, the less it counts",
        "Leave out answers of which a single token has a ratio below this",
        "more optimiser steps ago than this",
    ):
        assert words in text, words
    for name in ("ratio", "clip", "scaling", "sampler_weight_level", "sampler_mean_high", "max_off_policy_steps"):
        assert re.search(rf"^{name}\b", text, re.MULTILINE), name
