"""The training stage, for all methods.

Read top to bottom: open the models and the rows, prepare the batches, the frozen models and the loop, train, save a
folder that loads anywhere.
"""

from __future__ import annotations

import itertools
import traceback
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import torch

from steerboard_contracts.errors import OutOfMemory
from steerboard_contracts.online.rewarded import RewardedOnlineConfig
from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.stage.events import Paused, Prepared, Succeeded
from steerboard_contracts.stage.outputs import ModelOutput
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.watching.warnings import (
    doubtful_judges,
    fewer_steps,
    full_rate_kept,
    mixture_warnings,
    no_native_bf16,
    overfitted,
    unwatched,
)
from steerboard_workers.alignment.batches.batch_source import BatchSource
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.examples import Example, with_companions
from steerboard_workers.alignment.modules import JointModule, PolicyModule
from steerboard_workers.alignment.rollouts import LivePolicy, SourceContext
from steerboard_workers.stages.models.model_io import multiplies_bf16, pick_device, pick_dtype
from steerboard_workers.stages.oom import first_line, ran_out_of_memory
from steerboard_workers.stages.roles.apart import RolesApart
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.best_weights import check_can_keep_best
from steerboard_workers.stages.training.checkpoints import Checkpoints
from steerboard_workers.stages.training.data import TrainingData
from steerboard_workers.stages.training.determinism import deterministic_kernels
from steerboard_workers.stages.training.frozen.models import FrozenModels
from steerboard_workers.stages.training.further import batcher_for_all
from steerboard_workers.stages.training.loop import Trainer
from steerboard_workers.stages.training.opened import Opened, open_given
from steerboard_workers.stages.training.passes import ForwardPasses
from steerboard_workers.stages.training.preflight import Preflight
from steerboard_workers.stages.training.sampling.live_policy import SampledPolicy, Sampler
from steerboard_workers.stages.training.sampling.vllm_sampler import VllmSampler
from steerboard_workers.stages.training.saving import save_all
from steerboard_workers.stages.training.signature import signatures
from steerboard_workers.stages.training.watching.inspection import PairInspector, inspector_of
from steerboard_workers.stages.training.watching.observer import Observer
from steerboard_workers.stages.training.watching.probing import Prober, prober_of
from steerboard_workers.stages.training.watching.run_control import RunControl
from steerboard_workers.stages.training.watching.sampled_groups import SampledGroups


@dataclass
class Training:
    """A run that is ready to begin. `reported`: the summary and warnings that its owner was shown."""

    trainer: Trainer
    preflight: Preflight
    control: RunControl
    frozen: FrozenModels
    inspector: PairInspector | None
    prober: Prober | None
    reported: Prepared


def run(stage: Stage) -> Succeeded | Paused:
    given = stage.spec.config
    with deterministic_kernels(isinstance(given, TrainingConfig) and given.deterministic):
        return _run(stage)


def _run(stage: Stage) -> Succeeded | Paused:
    opened = open_given(stage)
    # Processes with engines have work until the training is over.
    with ExitStack() as engines:
        training = _prepare(stage, opened, engines)
        with stage.phases.measure("load"):
            memory = training.preflight.check()
        evaluated = _train(training)
    if isinstance(evaluated, Paused):
        opened.sharing.accelerator.end_training()
        return evaluated
    return _save(stage, opened, training, evaluated, memory)


def _prepare(stage: Stage, opened: Opened, engines: ExitStack) -> Training:
    config, method, sharing, start, data = opened.config, opened.method, opened.sharing, opened.start, opened.data
    policy, roles = _sampling(stage, opened, engines)
    passes = ForwardPasses(sharing, opened.further)
    sampled = SampledGroups(stage)
    source = method.source(_context(stage, opened, policy, passes, sampled))
    check_can_keep_best(config, data, source)
    reported = _report_prepared(stage, opened, source)
    examples = _rehearsed(data, source)
    batcher = _batcher(stage, opened, examples)
    passes.read_from(batcher)
    frozen = FrozenModels(stage, config, start, sharing, passes, method.temperature, roles)
    frozen.prepare(data, source, examples)
    reserve = stage.spec.disk_reserve_mb
    checkpoints = Checkpoints(stage.checkpoints, stage.spec.attempt, signatures(stage), stage.log, reserve_mb=reserve)
    with stage.phases.measure("evaluate"):
        inspector = inspector_of(stage, method, start.tokenizer, data, source, passes, frozen)
    prober = prober_of(stage, config, start, opened.module, sharing, data) if config.probe is not None else None
    optional = {"pairs": inspector, "probed": prober, "sampled": sampled if policy is not None else None}
    observers: dict[str, Observer] = {name: observer for name, observer in optional.items() if observer is not None}

    def change(changed: TrainingConfig) -> None:
        method.change(changed)
        sharing.set_rates(method.rates)
        trainer.change(changed)

    control = RunControl(stage, config, change)
    trainer = Trainer(
        stage,
        config,
        sharing,
        method.objective(),
        batcher,
        data,
        source,
        checkpoints,
        passes,
        opened.experts,
        observers,
        control,
    )
    preflight = Preflight(stage, config, trainer, batcher, start)
    return Training(trainer, preflight, control, frozen, inspector, prober, reported)


def _sampling(stage: Stage, opened: Opened, engines: ExitStack) -> tuple[LivePolicy | None, RolesApart | None]:
    """What answers prompts during the training, and the models that have devices of their own."""
    config, module, sharing = opened.config, opened.module, opened.sharing
    if not isinstance(config, OnlineConfig):
        return None, None
    roles: RolesApart | None = None
    sampler: Sampler | None = None
    if config.placement.apart:
        roles = RolesApart(stage, config, sharing)
        engines.callback(roles.close)
    if roles is not None and config.placement.rollout and isinstance(module, PolicyModule):
        sampler = roles.sampler(opened.start, module)
    elif config.engine == "vllm" and isinstance(module, PolicyModule):
        sampler = VllmSampler(stage, config, opened.start, module, sharing)
        engines.callback(sampler.close)
    return SampledPolicy(module, sharing, opened.start.renderer, config, stage.phases, sampler), roles


def _context(
    stage: Stage, opened: Opened, policy: LivePolicy | None, passes: ForwardPasses, sampled: SampledGroups
) -> SourceContext:
    return SourceContext(
        *(opened.data.train, opened.data.held_out, opened.start.renderer, policy, stage.phases, passes),
        keep_group=sampled.keep,
        reward_access=stage.spec.reward_access,
        further_data={name: data.train for name, data in opened.further_data.items()},
        started_as={role: setup.info.role for role, setup in opened.further.items()},
        mixed=opened.sharing.mixed,
    )


def _batcher(stage: Stage, opened: Opened, examples: list[Example]) -> Batcher:
    pad, share = opened.start.tokenizer.pad_token_id, opened.method.shares_prompt
    with stage.phases.measure("load"):
        batcher = batcher_for_all(stage, opened.config, opened.modules, examples, pad, opened.sharing, share)
    replays = isinstance(opened.config, OnlineConfig) and opened.config.replays_routes
    return replace(batcher, replays=replays)


def _train(training: Training) -> dict[str, float] | Paused:
    """The last evaluation's figures. Raises `OutOfMemory` with what would need less, and what the loop does."""
    trainer = training.trainer
    try:
        if training.prober is not None:
            training.prober.start(trainer.total, trainer.evaluates_every)
        return trainer.run()
    except Exception as error:
        if isinstance(error, OutOfMemory) or not ran_out_of_memory(error):
            raise
        # What its frames hold of the step that failed must be free when smaller ones are tried.
        traceback.clear_frames(error.__traceback__)
        raise training.preflight.error(first_line(error)) from error


def _save(
    stage: Stage, opened: Opened, training: Training, evaluated: dict[str, float], memory: dict[str, Any]
) -> Succeeded:
    _report_at_end(stage, opened, training)
    accelerator, inspector = opened.sharing.accelerator, training.inspector
    summary = _summary(opened, training, evaluated)
    # Others than the main process end meanwhile: no collective would wait for as long as a large model's writing takes.
    with stage.phases.measure("checkpoint"):
        save_all(stage, opened.config, opened.trained, opened.sharing, opened.data, summary)
    pairs = inspector.save(stage) if inspector is not None and accelerator.is_main_process else None
    accelerator.end_training()
    outputs = [ModelOutput(name=n, path=stage.output_path(n), role=setup.role) for n, setup in opened.trained.items()]
    # Not part of the model: equal runs make equal folders, whatever memory they found and time they took.
    costs = opened.parameters | memory | training.frozen.costs
    return Succeeded(outputs=[*outputs, *([pairs] if pairs is not None else [])], summary=summary | costs)


def _report_prepared(stage: Stage, opened: Opened, source: BatchSource) -> Prepared:
    """Reports how much of the model learns, and what the owner of the run must know before it ends."""
    config, start = opened.config, opened.start
    balanced = config.freeze_router or opened.experts.balances(JointModule.MAIN)
    warnings = mixture_warnings(start.experts, config.lora is not None, balanced, start.adapts_experts)
    read = [opened.data, *opened.further_data.values()]
    warnings += {warning.message: warning for data in read for warning in data.warnings}.values()
    if config.keeps_full_rate:
        warnings.append(full_rate_kept(config.lr))
    doubtful = doubtful_judges(config.doubts) if isinstance(config, RewardedOnlineConfig) else None
    if doubtful is not None:
        warnings.append(doubtful)
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
    prepared = Prepared(summary={**opened.data.summary, **opened.parameters}, warnings=warnings)
    stage.emit(prepared)
    return prepared


def _report_at_end(stage: Stage, opened: Opened, training: Training) -> None:
    """Warn of what only the figures of the whole run show."""
    trainer, reported = training.trainer, training.reported
    figures = {name for line in trainer.progress.history for name in line["values"]}
    late = [unwatched(opened.config.health, figures)]
    if not isinstance(opened.config, OnlineConfig):
        late.append(overfitted(trainer.progress.held_out_losses, best_kept=trainer.kept is not None))
    warnings = [warning for warning in late if warning is not None]
    for warning in warnings:
        stage.log(warning.message, "warning")
    if warnings:
        stage.emit(Prepared(summary=reported.summary, warnings=[*reported.warnings, *warnings]))


def _rehearsed(data: TrainingData, source: BatchSource) -> list[Example]:
    """Examples with the longest of everything that the run's passes read."""
    examples = list(with_companions(itertools.chain.from_iterable(source.rehearsal())))
    examples += _longest_besides(data, source)
    besides = source.rehearsed_besides()
    return [*examples, *(besides.examples if besides is not None else ())]


def _longest_besides(data: TrainingData, source: BatchSource) -> list[Example]:
    """The longest held-out sequence and the longest companion. Evaluation and `prepare` read these, and they may be
    longer than any that a step learns: the layout has to suit them, too."""
    drawn = source.drawn()
    train = data.train if drawn is None else [data.train[place] for place in drawn]
    held_out = [e for e in data.held_out if e.responses]
    held_out += data.variants.all if data.variants is not None else ()
    companions = [e.companion for e in [*train, *held_out] if e.companion is not None]
    return [example for part in (held_out, companions) for example in sorted(part, key=lambda e: max(e.lengths))[-1:]]


def _summary(opened: Opened, training: Training, evaluated: dict[str, float]) -> dict[str, Any]:
    data, trainer, control = opened.data, training.trainer, training.control
    final = trainer.progress.history[-1]["values"] if trainer.progress.history else {}
    summary = {"steps": trainer.progress.step, "loss": final.get("loss"), **data.summary}
    summary |= {f"eval_{name}": value for name, value in evaluated.items()}
    summary["tokens"] = _tokens(data, trainer)
    summary |= opened.method.summary(evaluated, len(data.held_out))
    summary |= {f"{name}_rows": len(further.train) for name, further in opened.further_data.items()}
    if trainer.progress.skipped:
        summary["skipped_updates"] = trainer.progress.skipped
    if trainer.stopped_by is not None:
        summary["stopped_by"] = trainer.stopped_by.kind
    if trainer.kept is not None:
        summary |= {"kept_step": trainer.kept.step, "kept": trainer.kept.in_words()}
    if control.applied:
        summary["changed_settings"] = control.in_words()
    return summary


def _tokens(data: TrainingData, trainer: Trainer) -> int:
    """The tokens of the training data, or of what was learned where that was sampled."""
    if data.train[0].responses:
        return sum(e.tokens for e in data.train)
    return sum(int(line["values"]["tokens"]) for line in trainer.progress.history)
