"""The config and the inputs of a run from OpenAI's request."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.openai_api.errors import refuse_others, unsupported
from steerboard.openai_api.jobs.graders import Rewards, rewards_of
from steerboard.openai_api.jobs.hyperparameters import Hyperparameters, checked, settled
from steerboard.openai_api.jobs.schemas import DEFAULT_TYPE, JobIn, JobPlan
from steerboard.platform.http.errors import InvalidRequest
from steerboard.playground.columns import reward_model
from steerboard.registry.service import get_model
from steerboard_contracts.complaints import locations
from steerboard_contracts.errors import BadInput, ErrorLocation
from steerboard_contracts.methods import methods, needed_method
from steerboard_contracts.models import what_to_name
from steerboard_contracts.online.rewarded import REWARD_MODELS, RewardedOnlineConfig
from steerboard_contracts.run_config import RUN_CONFIG
from steerboard_contracts.specs.method import MethodSpec

# Only for a first look at the config; the run is checked with the rows that there are.
_SOME_ROWS = 1000


def plan_of(session: Session, project: Project, job: JobIn) -> JobPlan:
    """Raises `UnsupportedParameter`, `InvalidRequest`, `BadGrader`, `NotFound`, `WrongRole`, and `BadInput`
    (`wrong_role`)."""
    refuse_others(job.model_extra or {}, {"integrations": ([],)}, "Settings of ours go into `steerboard.config`.")
    if job.validation_file is not None:
        raise unsupported(
            "validation_file",
            "is not supported: this server holds out rows of the training file itself",
            "Leave it out; `valid_loss` is of the held-out rows.",
        )
    kind, given, where = _method(job)
    spec = _spec_of(kind)
    graded = issubclass(spec.config, RewardedOnlineConfig)
    refuse_others({name: value for name, value in given.items() if name not in _read(graded)}, {})
    if job.hyperparameters is not None and given.get("hyperparameters") is not None:
        raise unsupported("hyperparameters", "is given twice, here and in `method`")
    model = get_model(session, project, job.model)
    if model.role not in spec.starts_from:
        raise BadInput(
            f"{model.name} is a {model.role} model, from which a `{kind}` job cannot start",
            code="wrong_role",
            hint=what_to_name(model.role, tuple(sorted(spec.starts_from))),
            errors=[ErrorLocation(location="model", message="is of the wrong role")],
        )
    by_method = given.get("hyperparameters") is not None
    plan = JobPlan(
        type=kind,
        method=spec.name,
        model_id=str(model.id),
        suffix=job.suffix,
        hyperparameters=checked(
            spec,
            given["hyperparameters"] if by_method else job.hyperparameters,
            f"{where}.hyperparameters" if by_method else "hyperparameters",
        ),
        grader=given.get("grader") if graded else None,
        rewards=_rewards(session, project, given.get("grader"), f"{where}.grader") if graded else None,
        options=job.steerboard,
    )
    _check(plan, job.seed or 0)
    return plan


def _rewards(session: Session, project: Project, grader: Any, where: str) -> Rewards:
    rewards = rewards_of(grader, where)
    if len(rewards.models) > len(REWARD_MODELS):
        raise unsupported(where, f"names {len(rewards.models)} reward models; a run takes {len(REWARD_MODELS)}")
    by_id = [(str(reward_model(session, project, name).id), weight) for name, weight in rewards.models]
    return rewards.model_copy(update={"models": by_id})


def config_of(plan: JobPlan, seed: int, rows: int) -> tuple[Hyperparameters, dict[str, Any]]:
    """The hyperparameters that `auto` comes to, and the config. Raises `BadInput` (`unknown_method`)."""
    values, fields = settled(needed_method(plan.method), plan.hyperparameters, rows)
    config: dict[str, Any] = {"run": "train", "method": plan.method, "seed": seed, **fields}
    if plan.rewards is not None:
        config["rules"] = plan.rewards.rules
        config["reward_weights"] = [weight for _, weight in plan.rewards.models] or None
    return values, {**config, **plan.options.config}


def inputs_of(plan: JobPlan, dataset: str) -> dict[str, str]:
    """The id of what each input is, by the input's name."""
    models = plan.rewards.models if plan.rewards is not None else []
    rewards = {name: model for name, (model, _) in zip(REWARD_MODELS, models, strict=False)}
    return {"model": plan.model_id, "data": dataset, **rewards}


def _check(plan: JobPlan, seed: int) -> None:
    _, config = config_of(plan, seed, _SOME_ROWS)
    if config["method"] != plan.method or config["run"] != "train":
        raise unsupported("steerboard.config", "cannot choose another method; name it in `method`")
    try:
        RUN_CONFIG.validate_python(config)
    except ValidationError as error:
        # Without the tags of the union that lead to the method's config.
        faults = [{**fault, "loc": fault["loc"][2:]} for fault in error.errors()]
        places = locations(faults)  # type: ignore[arg-type]
        raise InvalidRequest(
            "the job cannot be run as it is asked for",
            errors=places,
            hint="Correct the hyperparameters, the grader's rules or `steerboard.config`.",
        ) from None


def _method(job: JobIn) -> tuple[str, dict[str, Any], str]:
    """Its type, its fields, and their place in the request."""
    if job.method is None:
        return DEFAULT_TYPE, {}, "method"
    kind = job.method.get("type", DEFAULT_TYPE)
    given = job.method.get(kind) if isinstance(kind, str) else None
    where = f"method.{kind}"
    if not isinstance(kind, str) or not (given is None or isinstance(given, dict)):
        place = ErrorLocation(location="method", message='must be {"type": NAME, NAME: {...}}')
        raise InvalidRequest("`method` cannot be read", errors=[place])
    others = {f"method.{name}": value for name, value in job.method.items() if name not in ("type", kind)}
    refuse_others(others, dict.fromkeys(others, ()))
    return kind, given or {}, where


def _read(graded: bool) -> tuple[str, ...]:
    return ("hyperparameters", "grader") if graded else ("hyperparameters",)


def _spec_of(kind: str) -> MethodSpec:
    named = {spec.tuning.name: spec for spec in reversed(list(methods().values())) if spec.tuning is not None}
    if kind not in named:
        known = ", ".join(sorted(named))
        raise unsupported("method.type", f"is {kind[:100]!r}; known: {known}")
    return named[kind]
