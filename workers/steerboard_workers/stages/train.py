"""The training stage, for all methods.

Read top to bottom: open the start model, render the data, set the parts up, read the frozen models, train, save a
folder that loads anywhere.
"""

from __future__ import annotations

import itertools
import traceback
from contextlib import ExitStack
from typing import Any

import torch

from steerboard_contracts.errors import OutOfMemory
from steerboard_contracts.stage.events import Paused, Prepared, Succeeded
from steerboard_contracts.stage.outputs import ModelOutput
from steerboard_contracts.training import OnlineConfig, TrainingConfig
from steerboard_contracts.watching.warnings import (
    RunWarning,
    fewer_steps,
    full_rate_kept,
    mixture_warnings,
    no_native_bf16,
    overfitted,
)
from steerboard_workers.alignment.batches.batch_source import BatchSource
from steerboard_workers.alignment.examples import Example, with_companions
from steerboard_workers.alignment.methods import training_of
from steerboard_workers.alignment.modules import JointModule, PolicyModule, without_dropout
from steerboard_workers.alignment.rollouts import LivePolicy, SourceContext
from steerboard_workers.alignment.training_method import TrainingMethod
from steerboard_workers.stages.distributed.choice import strategy_of
from steerboard_workers.stages.models.model_io import check_safe, multiplies_bf16, pick_device, pick_dtype, read_info
from steerboard_workers.stages.oom import first_line, ran_out_of_memory
from steerboard_workers.stages.roles.apart import RolesApart
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.best_weights import check_can_keep_best
from steerboard_workers.stages.training.checkpoints import Checkpoints
from steerboard_workers.stages.training.data import TrainingData, load_data, load_further
from steerboard_workers.stages.training.frozen.models import FrozenModels
from steerboard_workers.stages.training.further import batcher_for_all, open_further
from steerboard_workers.stages.training.loop import Trainer
from steerboard_workers.stages.training.passes import ForwardPasses
from steerboard_workers.stages.training.preflight import Preflight
from steerboard_workers.stages.training.sampling.live_policy import SampledPolicy, Sampler
from steerboard_workers.stages.training.sampling.vllm_sampler import VllmSampler
from steerboard_workers.stages.training.saving import save_all
from steerboard_workers.stages.training.setup import Setup, open_model
from steerboard_workers.stages.training.signature import signatures
from steerboard_workers.stages.training.watching.inspection import inspector_of
from steerboard_workers.stages.training.watching.observer import Observer
from steerboard_workers.stages.training.watching.probing import prober_of
from steerboard_workers.stages.training.watching.run_control import RunControl
from steerboard_workers.stages.training.watching.sampled_groups import SampledGroups


def run(stage: Stage) -> Succeeded | Paused:
    with ExitStack() as engines:
        return _run(stage, engines)


def _run(stage: Stage, engines: ExitStack) -> Succeeded | Paused:
    """`engines`: other processes than those of the training, which have work until it is over."""
    given = stage.spec.config
    assert isinstance(given, TrainingConfig)
    stage.progress(0, 1, "models", "loading")
    with stage.using_model("model", "opening"):
        check_safe(stage.model_path("model"))
        info = read_info(stage.model_path("model"))
    config = given.for_start(info.template, info.condition)
    method = training_of(config)
    sharing = strategy_of(config, stage.spec.device)
    device = sharing.accelerator.device
    if device.type == "cuda":
        stage.phases.settle = lambda: torch.cuda.synchronize(device)
    with stage.phases.measure("load"), sharing.loading(), stage.using_model("model", "opening"):
        start = open_model(stage.model_path("model"), config, sharing.dtype, device)
    further = open_further(stage, config, start, sharing)
    stage.progress(1, 1, "models", "loading")
    with stage.phases.measure("load"), stage.using_model("model", "tokenising with"):
        data = load_data(stage, method, start.renderer)
        further_data = load_further(stage, config, start.renderer)

    module = start.module(method.temperature, method.needs_entropy)
    parts = {JointModule.MAIN: module, **{role: setup.module() for role, setup in further.items()}}
    if not method.drops_out:
        had_some = [without_dropout(part) for part in parts.values()]
        if any(had_some):
            stage.log(f"dropout is off: {config.method} compares log-probs with those of passes that have none")
    with stage.phases.measure("load"):
        sharing.share(JointModule(parts) if further else module, method.rates)
    pad, share = start.tokenizer.pad_token_id, method.shares_prompt
    policy: LivePolicy | None = None
    roles: RolesApart | None = None
    if isinstance(config, OnlineConfig):
        sampler: Sampler | None = None
        if config.placement.apart:
            roles = RolesApart(stage, config, sharing)
            engines.callback(roles.close)
        if roles is not None and config.placement.rollout and isinstance(module, PolicyModule):
            sampler = roles.sampler(start, module)
        elif config.engine == "vllm" and isinstance(module, PolicyModule):
            sampler = VllmSampler(stage, config, start, module, sharing)
            engines.callback(sampler.close)
        policy = SampledPolicy(module, sharing, start.renderer, config, stage.phases, sampler)
    passes = ForwardPasses(sharing, further)
    sampled = SampledGroups(stage)
    context = SourceContext(
        *(data.train, data.held_out, start.renderer, policy, stage.phases, passes),
        keep_group=sampled.keep,
        reward_access=stage.spec.reward_access,
        further_data={name: data.train for name, data in further_data.items()},
        started_as={role: setup.info.role for role, setup in further.items()},
        mixed=sharing.mixed,
    )
    source = method.source(context)
    check_can_keep_best(config, data, source)
    learns = {"parameters": start.parameters, "trainable_parameters": start.trained}
    known = {**data.summary, **learns}
    warnings = _report_prepared(stage, config, start, known, [data, *further_data.values()], source)
    examples = list(with_companions(itertools.chain.from_iterable(source.rehearsal())))
    examples += _longest_besides(data, source)
    besides = source.rehearsed_besides()
    examples += besides.examples if besides is not None else ()
    with stage.phases.measure("load"):
        batcher = batcher_for_all(stage, config, parts, examples, pad, sharing, share)
    passes.read_from(batcher)
    frozen = FrozenModels(stage, config, start, sharing, passes, method.temperature, roles)
    frozen.prepare(data, source, examples)
    checkpoints = Checkpoints(
        stage.checkpoints,
        stage.spec.attempt,
        signatures(stage),
        stage.log,
        reserve_mb=stage.spec.disk_reserve_mb,
    )
    with stage.phases.measure("evaluate"):
        inspector = inspector_of(stage, method, start.tokenizer, data, source, passes, frozen)
    prober = None
    if config.probe is not None:
        prober = prober_of(stage, config, start, module, sharing, data)
    optional = {"pairs": inspector, "probed": prober, "sampled": sampled if policy is not None else None}
    observers: dict[str, Observer] = {name: observer for name, observer in optional.items() if observer is not None}

    def change(changed: TrainingConfig) -> None:
        method.change(changed)
        sharing.set_rates(method.rates)
        trainer.change(changed)

    control = RunControl(stage, config, change)
    trainer = Trainer(
        stage, config, sharing, method.objective(), batcher, data, source, checkpoints, passes, observers, control
    )
    preflight = Preflight(stage, config, trainer, batcher, start)
    with stage.phases.measure("load"):
        memory = preflight.check()
    try:
        if prober is not None:
            prober.start(trainer.total, trainer.evaluates_every)
        evaluated = trainer.run()
    except Exception as error:
        if isinstance(error, OutOfMemory) or not ran_out_of_memory(error):
            raise
        # What its frames hold of the step that failed must be free when smaller ones are tried.
        traceback.clear_frames(error.__traceback__)
        raise preflight.error(first_line(error)) from error

    engines.close()
    if isinstance(evaluated, Paused):
        sharing.accelerator.end_training()
        return evaluated
    if not isinstance(config, OnlineConfig):
        _report_overfitted(stage, trainer, known, warnings)
    summary = _summary(method, data, trainer, evaluated)
    summary |= {f"{name}_rows": len(data.train) for name, data in further_data.items()}
    if trainer.progress.skipped:
        summary["skipped_updates"] = trainer.progress.skipped
    if trainer.stopped_by is not None:
        summary["stopped_by"] = trainer.stopped_by.kind
    if trainer.kept is not None:
        summary |= {"kept_step": trainer.kept.step, "kept": trainer.kept.in_words()}
    if control.applied:
        summary["changed_settings"] = control.in_words()
    # Others than the main process end meanwhile: no collective would wait for as long as a large model's writing takes.
    trained = {JointModule.MAIN: start, **further}
    with stage.phases.measure("checkpoint"):
        save_all(stage, config, trained, sharing, data, summary)
    pairs = inspector.save(stage) if inspector is not None and sharing.accelerator.is_main_process else None
    sharing.accelerator.end_training()
    # Not part of the model: equal runs make equal folders, whatever memory they found and time they took.
    outputs = [ModelOutput(name=n, path=stage.output_path(n), role=setup.role) for n, setup in trained.items()]
    further_outputs = [pairs] if pairs is not None else []
    return Succeeded(outputs=[*outputs, *further_outputs], summary=summary | learns | memory | frozen.costs)


def _report_prepared(
    stage: Stage,
    config: TrainingConfig,
    start: Setup,
    summary: dict[str, Any],
    read: list[TrainingData],
    source: BatchSource,
) -> list[RunWarning]:
    """How much of the model learns, and what the owner of the run must know before it ends. Returns the warnings."""
    warnings = mixture_warnings(start.experts, config.lora is not None, start.adapts_experts)
    warnings += {warning.message: warning for data in read for warning in data.warnings}.values()
    if config.keeps_full_rate:
        warnings.append(full_rate_kept(config.lr))
    device = pick_device(stage.spec.device)
    if pick_dtype(config.precision, device) is torch.bfloat16 and not multiplies_bf16(device):
        warnings.append(no_native_bf16())
    ends_early = fewer_steps(config.max_steps, source.steps, config.epochs)
    if ends_early is not None:
        warnings.append(ends_early)
    stage.log(
        f"{start.trained:,} of {start.parameters:,} parameters are trained ({start.trained / start.parameters:.1%})"
    )
    for warning in warnings:
        stage.log(warning.message, "warning")
    stage.emit(Prepared(summary=summary, warnings=warnings))
    return warnings


def _report_overfitted(stage: Stage, trainer: Trainer, summary: dict[str, Any], warnings: list[RunWarning]) -> None:
    warning = overfitted(trainer.progress.held_out_losses, best_kept=trainer.kept is not None)
    if warning is not None:
        stage.log(warning.message, "warning")
        stage.emit(Prepared(summary=summary, warnings=[*warnings, warning]))


def _longest_besides(data: TrainingData, source: BatchSource) -> list[Example]:
    """The longest held-out sequence and the longest companion. Evaluation and `prepare` read these, and they may be
    longer than any that a step learns: the layout has to suit them, too."""
    drawn = source.drawn()
    train = data.train if drawn is None else [data.train[place] for place in drawn]
    held_out = [e for e in data.held_out if e.responses]
    held_out += data.variants.all if data.variants is not None else ()
    companions = [e.companion for e in [*train, *held_out] if e.companion is not None]
    return [example for part in (held_out, companions) for example in sorted(part, key=lambda e: max(e.lengths))[-1:]]


def _summary(
    method: TrainingMethod[Any], data: TrainingData, trainer: Trainer, evaluated: dict[str, float]
) -> dict[str, Any]:
    final = trainer.progress.history[-1]["values"] if trainer.progress.history else {}
    summary = {"steps": trainer.progress.step, "loss": final.get("loss"), **data.summary}
    summary |= {f"eval_{name}": value for name, value in evaluated.items()}
    summary["tokens"] = _tokens(data, trainer)
    return summary | method.summary(evaluated, len(data.held_out))


def _tokens(data: TrainingData, trainer: Trainer) -> int:
    """The tokens of the training data, or of what was learned where that was sampled."""
    if data.train[0].responses:
        return sum(e.tokens for e in data.train)
    return sum(int(line["values"]["tokens"]) for line in trainer.progress.history)
