"""What a run could not learn from is refused when it is asked for: the input, what was expected, and what to do."""

from __future__ import annotations

import io
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from api_world import ApiWorld
from sqlalchemy import select

from steerboard.accounts.tables import Project
from steerboard.datasets.tables import SampleRow
from steerboard.platform.database import transaction
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.service import register_model
from steerboard_contracts.models import ModelRole
from support.models.model_folders import write_model

KTO_RECIPE = """\
name: thumbs
inputs:
  base: {type: model}
  data: {type: dataset, kind: unpaired}
stages:
  kto: {run: train, method: kto, model: $base, data: $data}
"""
SELECT_RECIPE = """\
name: choose
inputs:
  base: {type: model}
  judge: {type: model}
  data: {type: dataset, kind: prompts}
stages:
  answers: {run: generate, model: $base, data: $data, decoding: {temperature: 1.0, n: 1}}
  graded: {run: score, data: answers, reward: $judge}
  best: {run: select, data: [graded]}
"""


def imported(world: ApiWorld, name: str, kind: str, rows: list[dict[str, Any]], held_out: float = 0.0) -> None:
    with transaction(world.sessions) as session:
        session.get_one(Project, world.project.id).held_out_fraction = held_out
    file = io.BytesIO("".join(json.dumps(row) + "\n" for row in rows).encode())
    form = {"name": name, "kind": kind}
    answer = world.client.post(world.url("datasets/import"), data=form, files={"file": ("rows.jsonl", file)})
    assert answer.status_code == 201, answer.text


def thumbs(*desirable: bool, prompts: int = 100) -> list[dict[str, Any]]:
    return [
        {"prompt": f"Question {n % prompts}?", "response": f"Answer {n}.", "desirable": thumb}
        for n, thumb in enumerate(desirable)
    ]


def fault_of(world: ApiWorld, config: dict[str, Any], code: str = "invalid_run", **inputs: str) -> tuple[str, str]:
    problem = world.post("runs", {"config": config, "inputs": inputs}, status=422)
    assert problem["code"] == code
    (fault,) = problem["errors"]
    assert world.get("runs")["items"] == []
    return fault["location"], fault["message"]


def kto(world: ApiWorld, data: str) -> tuple[str, str]:
    return fault_of(world, {"run": "train", "method": "kto"}, model="tiny", data=data)


@pytest.mark.parametrize("up", [True, False])
def test_thumbs_of_one_kind_are_refused_with_what_lacks(world: ApiWorld, up: bool) -> None:
    imported(world, "thumbs", "unpaired", thumbs(*[up] * 4))
    have, lack = ("desirable", "undesirable") if up else ("undesirable", "desirable")
    place, message = kto(world, "thumbs")
    assert place == "inputs.data"
    assert message.startswith(f"all 4 training rows are {have}, and KTO needs both kinds: add {lack} answers")
    assert ("convert these to instructions" in message) == up
    refused = world.post("recipes/check", {"text": KTO_RECIPE, "set": ["base=tiny", "data=thumbs"]}, status=422)
    assert message in json.dumps(refused)


def test_held_out_rows_of_the_other_kind_make_no_two_sides(world: ApiWorld) -> None:
    """Some of many prompts are held out, and the only undesirable answers are to those."""
    rows = thumbs(*[True] * 40)
    imported(world, "plain", "instructions", [{"prompt": r["prompt"], "response": "x"} for r in rows], held_out=0.3)
    with transaction(world.sessions) as session:
        held_out = list(session.scalars(select(SampleRow.held_out).order_by(SampleRow.row)))
    assert 0 < sum(held_out) < 40
    mixed = [row | {"desirable": not held} for row, held in zip(rows, held_out, strict=True)]
    imported(world, "thumbs", "unpaired", mixed, held_out=0.3)
    assert kto(world, "thumbs")[1].startswith(f"all {40 - sum(held_out)} training rows are desirable")


def test_answers_to_one_prompt_are_refused_where_other_prompts_are_compared_with(world: ApiWorld) -> None:
    imported(world, "narrow", "unpaired", thumbs(True, False, True, prompts=1))
    assert kto(world, "narrow") == (
        "inputs.data",
        "all training rows answer one prompt, and KTO compares answers to different prompts: add rows with other "
        "prompts",
    )
    imported(world, "wide", "unpaired", thumbs(True, False, True))
    made = {"config": {"run": "train", "method": "kto"}, "inputs": {"model": "tiny", "data": "wide"}}
    world.post("runs", made, status=201)


def test_data_of_the_wrong_kind_are_refused_with_the_conversion_that_fits(world: ApiWorld) -> None:
    imported(world, "thumbs", "unpaired", thumbs(True, False))
    place, message = fault_of(world, {"run": "train", "method": "dpo"}, model="tiny", data="thumbs")
    assert (place, message) == (
        "inputs.data",
        "needs a dataset of kind preferences; `thumbs` is a dataset of kind unpaired. Convert it: "
        "`steerboard datasets convert thumbs pairs_from_thumbs`",
    )
    recipe = KTO_RECIPE.replace("unpaired", "instructions").replace("kto", "sft")
    refused = world.post("recipes/check", {"text": recipe, "set": ["base=tiny", "data=hh"]}, status=422)
    assert "steerboard datasets convert hh chosen_responses" in json.dumps(refused)


def test_one_answer_to_each_prompt_is_nothing_to_select_from(world: ApiWorld) -> None:
    world.model("compares", role="preference")
    rows = [{"prompt": f"Question {n}?", "response": "A.", "group": n, "candidate": 0} for n in range(3)]
    imported(world, "single", "instructions", rows)
    place, message = fault_of(world, {"run": "select"}, **{"data.0": "single", "judge": "compares"})
    assert place == "inputs.data.0"
    assert message.startswith("none of the 3 prompts in `single` has two answers to compare. Generate with several")
    imported(world, "several", "instructions", [*rows, {**rows[0], "candidate": 1, "response": "B."}])
    inputs = {"data.0": "several", "judge": "compares"}
    world.post("runs", {"config": {"run": "select"}, "inputs": inputs}, status=201)


def test_a_recipe_that_selects_from_single_answers_is_refused_before_any_is_written(world: ApiWorld) -> None:
    world.model("judge", role="reward")
    imported(world, "asked", "prompts", [{"prompt": "Question?"}])
    settings = ["base=tiny", "judge=judge", "data=asked"]
    refused = world.post("recipes/check", {"text": SELECT_RECIPE, "set": settings}, status=422)
    assert "`answers` writes one answer to each prompt" in json.dumps(refused)
    world.post("recipes/check", {"text": SELECT_RECIPE.replace("n: 1", "n: 2"), "set": settings})


class Shelf:
    """Models whose tokenizers are written out."""

    def __init__(self, world: ApiWorld, store: ArtifactStore, folder: Path) -> None:
        self.world, self.store, self.folder = world, store, folder

    def model(self, name: str, tokenizer: dict[str, Any], role: ModelRole = "sft", pad: str | None = None) -> uuid.UUID:
        folder = write_model(self.folder / name, role, None)
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        (folder / "tokenizer_config.json").write_text(json.dumps({"pad_token": pad}))
        with transaction(self.world.sessions) as session:
            project = session.get_one(Project, self.world.project.id)
            return register_model(
                session,
                self.store,
                project,
                name=name,
                folder=folder,
                role=role,
                method=None,
                parent_id=None,
                run_id=None,
            ).id


@pytest.fixture
def shelf(world: ApiWorld, store: ArtifactStore, tmp_path: Path) -> Shelf:
    return Shelf(world, store, tmp_path)


def bpe(*tokens: str, **added: int) -> dict[str, Any]:
    return {
        "model": {"type": "BPE", "vocab": {token: number for number, token in enumerate(tokens)}},
        "added_tokens": [{"id": number, "content": token} for token, number in added.items()],
    }


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (bpe("a", "c"), "token 'b', number 1 of `start`, is unknown to it"),
        (bpe("b", "a"), "token 'a', number 0 of `start`, is number 1 there"),
        ({"model": {"type": "Unigram", "vocab": [["a", -1.0], ["c", -2.0]]}}, "token 'b', number 1 of `start`"),
    ],
)
def test_a_reference_of_another_vocabulary_is_refused(shelf: Shelf, other: dict[str, Any], words: str) -> None:
    shelf.model("start", bpe("a", "b", end=2))
    shelf.model("strange", other)
    world = shelf.world
    dpo, inputs = {"run": "train", "method": "dpo"}, {"model": "start", "data": "hh", "reference": "strange"}
    place, message = fault_of(world, dpo, code="tokenizer_differs", **inputs)
    assert place == "inputs.reference"
    assert message.startswith(f"`strange` has another tokenizer than `start`: {words}")
    assert message.endswith("Take a model of the same family, such as the one that training starts from")
    recipe = "name: dpo\ninputs: {base: {type: model}, ref: {type: model}, data: {type: dataset}}\n"
    recipe += "stages:\n  dpo: {run: train, method: dpo, model: $base, reference: $ref, data: $data}\n"
    body = {"text": recipe, "set": ["base=start", "ref=strange", "data=hh"]}
    assert words in json.dumps(world.post("recipes/check", body, status=422), ensure_ascii=False)


def test_a_teacher_of_another_vocabulary_is_refused_with_what_can_be_done_instead(shelf: Shelf) -> None:
    shelf.model("student", bpe("a", "b"))
    shelf.model("strange", bpe("b", "a"))
    given = {"model": "student", "data": "hh", "teacher": "strange"}
    method = {"run": "train", "method": "distillation"}
    place, message = fault_of(shelf.world, method, code="tokenizer_differs", **given)
    assert place == "inputs.teacher"
    assert "`strange` has another tokenizer than `student`: token 'a', number 0 of `student`, is number 1" in message
    assert message.endswith("`generate` with it, then train `sft` on them")


def test_answers_to_distil_off_the_policy_need_rows_that_have_one(shelf: Shelf) -> None:
    shelf.model("student", bpe("a", "b"))
    world, half = shelf.world, {"run": "train", "method": "distillation", "on_policy": 0.5}
    place, message = fault_of(world, half, model="student", data="hh", teacher="student")
    assert place == "inputs.data"
    assert message.startswith("on_policy 0.5 learns answers of the dataset, and preferences have no single one")
    recipe = "name: d\ninputs: {base: {type: model}, hh: {type: dataset, kind: preferences}}\nstages:\n"
    recipe += "  answers: {run: generate, model: $base, data: $hh}\n"
    recipe += "  distil: {run: train, method: distillation, model: $base, teacher: $base, data: DATA, on_policy: 0.5}\n"
    settings = ["base=student", "hh=hh"]
    for data, status in (("answers", 200), ("$hh", 422)):
        world.post("recipes/check", {"text": recipe.replace("DATA", data), "set": settings}, status=status)


def test_a_reference_with_more_tokens_or_another_padding_is_taken(shelf: Shelf) -> None:
    """It reads every token of the policy as the same text; files that say nothing are left to the run."""
    shelf.model("start", bpe("a", "b", pad=2), pad="pad")
    shelf.model("larger", bpe("a", "b", "c", "d"))
    shelf.model("unknown", {})
    for reference in ("larger", "unknown", "start"):
        inputs = {"model": "start", "data": "hh", "reference": reference}
        shelf.world.post("runs", {"config": {"run": "train", "method": "dpo"}, "inputs": inputs}, status=201)


def test_tokens_of_scores_make_no_other_vocabulary(shelf: Shelf) -> None:
    """No answer has one, and so the model that such a policy was trained from reads all that the policy answers."""
    shelf.model("start", bpe("a", "b"))
    shelf.model("steered", bpe("a", "b", **{"<|rm_score_0|>": 2, "<|rm_score_1|>": 3}))
    inputs = {"model": "steered", "data": "hh", "reference": "start"}
    shelf.world.post("runs", {"config": {"run": "train", "method": "dpo"}, "inputs": inputs}, status=201)


def test_a_reward_model_that_reads_texts_may_have_any_vocabulary(shelf: Shelf) -> None:
    shelf.model("start", bpe("a", "b"))
    shelf.model("strange", bpe("x", "y"), role="reward")
    inputs = {"model": "start", "data": "hh", "reward": "strange"}
    config = {"run": "train", "method": "ppo", "max_new_tokens": 16}
    shelf.world.post("runs", {"config": config, "inputs": inputs}, status=201)
    assert fault_of_second(shelf.world, {**inputs, "critic": "strange"}, config) == "inputs.critic"


def fault_of_second(world: ApiWorld, inputs: dict[str, str], config: dict[str, Any]) -> str:
    (fault,) = world.post("runs", {"config": config, "inputs": inputs}, status=422)["errors"]
    return str(fault["location"])
