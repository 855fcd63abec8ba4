"""Whether a stage may start, given its config and its inputs.

A run of its own is a plan of one stage. The caller maps the faults to where a person looks for them: a form to its
fields, a recipe to its lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from steerboard.datasets.conversions.launch import MORE_ANSWERS
from steerboard.runs.errors import NoTrainingRows
from steerboard.runs.kinds import adapter_misfit, misfit, needs_whole
from steerboard.runs.launch.lookup import Catalogue, KnownDataset, KnownModel
from steerboard.runs.texts import all_held_out
from steerboard_contracts.complaints import did_you_mean
from steerboard_contracts.errors import BadInput
from steerboard_contracts.methods import needed_method
from steerboard_contracts.online.environments import EpisodicConfig, OpenEnvServer
from steerboard_contracts.online.reward_rules import HttpReward
from steerboard_contracts.online.rewarded import RewardedOnlineConfig
from steerboard_contracts.run_config import RunConfig
from steerboard_contracts.run_kinds.mix import MixConfig
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import Slot, Thing
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.wording import counted, listed

Place = tuple[str, ...]


@dataclass(frozen=True)
class Made:
    """What another stage of the same plan will make: a model of role, or a dataset of kind `makes`; with None, nothing
    that a stage takes. `text` is how it is named, `word` the kind of that stage. `single`: the stage that writes one
    answer to each prompt, where these are its answers."""

    text: str
    word: str
    thing: Thing | None
    makes: str | None
    single: str | None = None


Given = KnownDataset | KnownModel | Made


@dataclass(frozen=True)
class ResolvedStage:
    """`written`: the fields of its config as they were given, valid or not; `config` is None where they are not.
    `inputs`: by name (`data`, `parts.0`), also those that are at fault themselves or made beforehand, as None."""

    kind: RunKindSpec
    config: RunConfig | None
    written: Mapping[str, Any]
    inputs: Mapping[str, Given | None]


@dataclass(frozen=True)
class StageFault:
    """`place`: `("inputs", NAME)`, `("config", FIELD, ...)`, or empty for the stage as a whole. `code`: where a program
    can do something about it."""

    place: Place
    message: str
    code: str | None = None


def stage_faults(stage: ResolvedStage, catalogue: Catalogue) -> Iterator[StageFault]:
    """Everything that is known against a start, in no order that matters."""
    slots = stage.kind.slots_of(stage.inputs)
    if isinstance(stage.config, MixConfig):
        slots["parts"] = stage.config.parts_slot
    for name, given in stage.inputs.items():
        slot = name.partition(".")[0]
        fault = None if given is None else _input_fault(stage, slot, slots[slot], given, catalogue)
        if fault is not None:
            yield StageFault(("inputs", name), *fault)
    if isinstance(stage.config, TrainingConfig):
        yield from _training_faults(stage, stage.config, catalogue)
    yield from _missing(stage)
    yield from _uneven_lists(stage)
    yield from _prompt_faults(stage)
    yield from _endpoint_faults(stage, catalogue)


def _input_fault(
    stage: ResolvedStage, name: str, slot: Slot, given: Given, catalogue: Catalogue
) -> tuple[str, str | None] | None:
    """Why it does not fit, and the code; None: it does."""
    wrong = _misfit(slot, given)
    if wrong is not None:
        return wrong, None
    if isinstance(given, Made):
        compares = "group" in stage.kind.needs_field.values()
        return (_single_answers(given), None) if compares and given.single else None
    if isinstance(given, KnownModel):
        setting = needs_whole(stage.config, name) if given.adapter else None
        return (adapter_misfit(given.name, setting), None) if setting else None
    if stage.kind.run == "train" and given.rows == given.held_out_rows:
        message = f"`{given.name}` has {all_held_out(given.rows)}, so none are left for training"
        return message, NoTrainingRows.code
    needed = stage.kind.needs_field.get(given.kind)
    if needed is not None and given.fields is not None and needed not in given.fields:
        return f"needs rows with `{needed}`; those of `{given.name}` have {', '.join(given.fields)}", None
    rows = catalogue.rows_fault(given, stage.kind, name, stage.config)
    return None if rows is None else (rows, None)


def _misfit(slot: Slot, given: Given) -> str | None:
    if isinstance(given, Made):
        thing, makes = given.thing, given.makes
        made = "a report, which no stage takes as input" if makes is None else _described(thing, makes)
        what = f"`{given.text}` ({given.word}) makes {made}"
    else:
        thing, makes = ("model", given.role) if isinstance(given, KnownModel) else ("dataset", given.kind)
        what = f"`{given.name}` is {_described(thing, makes)}"
    if thing == slot.thing and makes in slot.allowed:
        return None
    return misfit(slot, what, makes, given.name if isinstance(given, KnownDataset) else None)


def _described(thing: str | None, makes: str) -> str:
    return f"a model of role {makes}" if thing == "model" else f"a dataset of kind {makes}"


def _single_answers(given: Made) -> str:
    return f"`{given.single}` writes one answer to each prompt, and there is nothing to compare. {MORE_ANSWERS}"


def _training_faults(stage: ResolvedStage, config: TrainingConfig, catalogue: Catalogue) -> Iterator[StageFault]:
    method, start = needed_method(config.method), stage.inputs.get("model")
    if isinstance(start, KnownModel):
        room = config.room_fault(start.window) if start.window else None
        if room is not None:
            yield StageFault(("config", "max_new_tokens"), room)
        for name in method.given_tokens(config):
            other = stage.inputs.get(name)
            fault = catalogue.tokenizer_fault(start, other) if isinstance(other, KnownModel) else None
            if fault is not None:
                instead = method.instead_of(name)
                yield StageFault(("inputs", name), f"{fault}. {instead}" if instead else fault, "tokenizer_differs")
    data = stage.inputs.get("data")
    too_few = config.steps_fault(data.rows - data.held_out_rows) if isinstance(data, KnownDataset) else None
    if too_few is not None:
        yield StageFault(("config", "max_steps"), too_few)
    kind = _kind_of(data)
    unfit = None if kind is None else config.kind_fault(kind)
    if unfit is not None:
        yield StageFault(("inputs", "data"), unfit)
    lacking = config.input_fault(stage.inputs)
    if lacking is not None:
        yield StageFault((), lacking)
    misplaced = method.placement_fault(config, stage.inputs)
    if misplaced is not None:
        yield StageFault(("config", "placement"), misplaced)
    if isinstance(config, RewardedOnlineConfig):
        yield from _judge_faults(config, catalogue)
        yield from _address_faults(config, catalogue)


def _judge_faults(config: RewardedOnlineConfig, catalogue: Catalogue) -> Iterator[StageFault]:
    """The faults of the judges among the rewards of a run's own answers."""
    for at, rule in config.judges.items():
        place = ("config", "rules", str(at), "judge")
        try:
            unfit = config.judge_fault(catalogue.reward_judge(rule))
        except BadInput as error:
            yield StageFault(place, f"{error.detail}. {error.hint}", error.code)
            continue
        if unfit is not None:
            yield StageFault(place, f"`{rule.judge}` cannot judge these answers: {unfit}")


def _address_faults(config: RewardedOnlineConfig, catalogue: Catalogue) -> Iterator[StageFault]:
    """The servers of rewards and environments at private addresses: every call to them would be refused."""
    servers: list[tuple[tuple[str, ...], HttpReward | OpenEnvServer]] = [
        (("rules", str(at)), rule) for at, rule in enumerate(config.rules) if isinstance(rule, HttpReward)
    ]
    environment = config.environment if isinstance(config, EpisodicConfig) else None
    if isinstance(environment, OpenEnvServer):
        servers.append((("environment",), environment))
    for place, server in servers:
        wrong = catalogue.address_fault(server.url)
        if wrong is not None:
            yield StageFault(("config", *place, "url"), wrong)


def _kind_of(given: Given | None) -> str | None:
    """The kind of a dataset, also of one that is yet to be made."""
    return given.kind if isinstance(given, KnownDataset) else given.makes if isinstance(given, Made) else None


def _missing(stage: ResolvedStage) -> Iterator[StageFault]:
    kind, written = stage.kind, stage.written
    judged = written.get("judge") is not None or "judge" in stage.inputs
    for name, slot in kind.slots.items():
        elsewhere = (name == "model" and kind.asks_endpoint and written.get("endpoint") is not None) or (
            name == "rewards" and written.get("decides") is True and judged
        )
        if slot.required and not _is_given(stage, name) and not elsewhere and slot.or_field is None:
            what = "a model" if slot.thing == "model" else "a dataset"
            yield StageFault(("inputs", f"{name}.0" if slot.many else name), f"needs `{name}`: {what}")
    random = kind.run == "base" and str(written.get("source", "")).startswith("random:")
    if random and not _is_given(stage, "data"):
        message = "needs `data`: the tokenizer of a random model is trained on it"
        yield StageFault(("inputs", "data.0" if kind.slots["data"].many else "data"), message)


def _is_given(stage: ResolvedStage, slot: str) -> bool:
    return slot in stage.inputs or f"{slot}.0" in stage.inputs


def _uneven_lists(stage: ResolvedStage) -> Iterator[StageFault]:
    for field, slot in stage.kind.lists.items():
        items = stage.written.get(field)
        given = sum(name.startswith(f"{slot}.") for name in stage.inputs)
        # A list that has a default may be left empty.
        left_out = not items and not stage.kind.config.model_fields[field].is_required()
        if isinstance(items, list) and given != len(items) and not left_out:
            message = f"has {counted(len(items), 'item')} for {given} of `{slot}`"
            yield StageFault(("config", field), message)


def _prompt_faults(stage: ResolvedStage) -> Iterator[StageFault]:
    for name, field in _written_out(stage.kind).items():
        if _is_given(stage, name) and stage.written.get(field):
            yield StageFault(("config", field), f"has both `{field}` and `{name}`; use one of them")
        if not _is_given(stage, name) and not stage.written.get(field):
            yield StageFault(("inputs", name), f"needs `{name}`, or `{field}` written out")


def _written_out(kind: RunKindSpec) -> dict[str, str]:
    """The fields in which the rows of slots can be written out, by slot."""
    return {name: slot.or_field for name, slot in kind.slots.items() if slot.or_field is not None}


def _endpoint_faults(stage: ResolvedStage, catalogue: Catalogue) -> Iterator[StageFault]:
    kind, endpoint = stage.kind, stage.written.get("endpoint")
    written_out = _written_out(kind)
    if kind.asks_endpoint is not None and endpoint is not None:
        if isinstance(endpoint, str) and not catalogue.has_endpoint(endpoint):
            yield StageFault(("config", "endpoint"), _no_endpoint(endpoint, catalogue))
        if "model" in stage.inputs or any(stage.written.get(field) for field in written_out.values()):
            message = "an endpoint takes the place of `model`"
            if written_out:
                message += f", and is asked for the rows of {listed(f'`{slot}`' for slot in written_out)} only"
            yield StageFault(("config", "endpoint"), message)
    judge = getattr(stage.config, "judge", None)
    if judge is None:
        return
    if not catalogue.has_endpoint(judge.endpoint):
        yield StageFault(("config", "judge", "endpoint"), _no_endpoint(judge.endpoint, catalogue))
    if "judge" in stage.inputs:
        yield StageFault(("inputs", "judge"), "has an endpoint that judges as well; use one of them")


def _no_endpoint(name: str, catalogue: Catalogue) -> str:
    return f"there is no endpoint `{name}` in the project" + did_you_mean(name, catalogue.endpoint_names())
