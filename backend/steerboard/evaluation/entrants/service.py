"""Entrants: who answers an evaluation's prompts, and the runs that let them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.errors import NameTaken
from steerboard.evaluation import divergence
from steerboard.evaluation.entrants.schemas import EntrantIn
from steerboard.evaluation.prompts.service import prompts_hash
from steerboard.evaluation.recipe_runs import RecipeStage, child_of
from steerboard.evaluation.tables import Entrant, Evaluation, EvaluationPrompt
from steerboard.platform.names import check_name, find, free_name, names_like
from steerboard.registry.endpoints.service import check_guidance, get_endpoint, score_text
from steerboard.registry.service import get_model
from steerboard.registry.tables import Endpoint, Model
from steerboard.runs.state.lifecycle import InputRef, create_run
from steerboard_contracts.decoding import Decoding, guided_suffix, no_guidance
from steerboard_contracts.errors import BadInput, ErrorLocation, SteerboardError
from steerboard_contracts.methods import conditioned_labels
from steerboard_contracts.models import POLICIES, ModelInfo, what_to_name
from steerboard_contracts.run_kinds.answer import AnswerConfig

MOST_ENTRANTS = 64
# FastChat's temperature_config for generating MT-Bench answers; other categories have DEFAULT_TEMPERATURE.
MT_BENCH_TEMPERATURES = {
    "writing": 0.7,
    "roleplay": 0.7,
    "extraction": 0.0,
    "math": 0.0,
    "coding": 0.0,
    "reasoning": 0.0,
    "stem": 0.1,
    "humanities": 0.1,
    "arena-hard-200": 0.0,
}
DEFAULT_TEMPERATURE = 0.7
_FAMILIES = {
    "gpt": "gpt",
    "chatgpt": "gpt",
    "text-davinci": "gpt",
    "o1": "gpt",
    "o3": "gpt",
    "claude": "claude",
    "gemini": "gemini",
    "gemma": "gemma",
    "llama": "llama",
    "alpaca": "llama",
    "vicuna": "llama",
    "tulu": "llama",
    "mistral": "mistral",
    "mixtral": "mistral",
    "qwen": "qwen",
    "deepseek": "deepseek",
    "yi": "yi",
    "phi": "phi",
    "command": "command",
    "falcon": "falcon",
    "mpt": "mpt",
}


def add(
    session: Session,
    project: Project,
    evaluation: Evaluation,
    given: EntrantIn,
    actor: str,
    stage: RecipeStage | None = None,
) -> Entrant:
    """Enter one and start the run of its answers, for a recipe's `stage` as one of its own. Raises `NotFound`,
    `NameTaken`, `BadInput` (`wrong_role`, `no_score_format`, `unknown_attribute`, `equal_samples`,
    `several_turns`, `too_many_entrants`).
    """
    position = next_position(session, evaluation)
    decoding, temperatures = _decoding(given)
    entrant = Entrant(
        evaluation_id=evaluation.id,
        position=position,
        decoding={**decoding.model_dump(mode="json", exclude={"n"}), "temperatures": temperatures},
        samples=given.samples,
        score=given.score,
    )
    inputs: dict[str, InputRef] = {}
    if given.reward is not None:
        chooser = _chooser(session, project, evaluation, given.reward)
        inputs["reward"] = InputRef(model=chooser.id)
        best_of = {"n": given.best_of, "reward": chooser.name, "content_hash": chooser.artifact_hash}
        entrant.decoding = {**entrant.decoding, "best_of": best_of}
    if given.model is not None:
        model = get_model(session, project, given.model)
        _of_model(entrant, model, given)
        inputs["model"] = InputRef(model=model.id)
    else:
        _of_endpoint(session, entrant, get_endpoint(session, project, given.endpoint or ""), given)
    entrant.name = given.name or _default_name(session, evaluation, entrant)
    check_free(session, evaluation, entrant.name)
    session.add(entrant)
    session.flush()
    inputs |= divergence.inputs_of(session, evaluation, entrant)
    endpoint = session.get(Endpoint, entrant.endpoint_id) if entrant.endpoint_id else None
    how = {} if stage is None else stage.config.model_dump(include={"batch_size", "precision", "vllm"})
    named: dict[str, Any] = {"name": f"{evaluation.name}.{entrant.name}"[:128], **child_of(stage, entrant.name)}
    run = create_run(
        session,
        project,
        **named,
        config=AnswerConfig(
            evaluation=evaluation.id,
            entrant=entrant.id,
            prompts_hash=prompts_hash(session, evaluation.id),
            endpoint=endpoint.name if endpoint else None,
            engine=given.engine,
            decoding=decoding,
            temperatures=temperatures,
            score=entrant.score,
            samples=entrant.samples,
            best_of=given.best_of,
            estimates_kl=divergence.estimates_kl(evaluation, entrant),
            seed=evaluation.seed,
            **how,
        ),
        inputs=inputs,
        pool=evaluation.pool or "default",
        # What a server elsewhere answers today it may not answer tomorrow.
        reuse=endpoint is None and (stage is None or stage.run.reuse),
        created_by=actor,
    )
    entrant.run_id = run.id
    session.flush()
    return entrant


@contextmanager
def faults_below(place: str) -> Iterator[None]:
    """Errors of an entrant's fields, as `reward`, raised as of the request that has it: `body.entrants.1.reward`."""
    try:
        yield
    except SteerboardError as error:
        error.errors = [
            ErrorLocation(location=f"{place}.{fault.location}", message=fault.message) for fault in error.errors
        ]
        raise


def next_position(session: Session, evaluation: Evaluation) -> int:
    """The place of one more entrant. Others who add one wait. Raises `BadInput` (`too_many_entrants`)."""
    session.execute(select(Evaluation.id).where(Evaluation.id == evaluation.id).with_for_update(key_share=True))
    in_evaluation = Entrant.evaluation_id == evaluation.id
    count, last = session.execute(select(func.count(), func.max(Entrant.position)).where(in_evaluation)).one()
    if count >= MOST_ENTRANTS:
        raise BadInput(f"an evaluation has at most {MOST_ENTRANTS} entrants", code="too_many_entrants")
    return 0 if last is None else int(last) + 1


def check_free(session: Session, evaluation: Evaluation, name: str) -> None:
    """Raises `NameTaken`."""
    if _taken(session, evaluation, name):
        raise NameTaken(f"there is already an entrant {name!r}", hint="Give it another `name`.")


def get_entrant(session: Session, evaluation: Evaluation, ref: str | uuid.UUID) -> Entrant | None:
    """The entrant by name or id."""
    return find(session, select(Entrant).where(Entrant.evaluation_id == evaluation.id), Entrant.id, Entrant.name, ref)


def family_of(model: str) -> str | None:
    """The family implied by a model's name: `gpt-4o` is of gpt, `Meta-Llama-3-8B` of llama."""
    words = re.split(r"[^a-z0-9]+", model.lower())
    for spelling, family in _FAMILIES.items():
        if model.lower().startswith(spelling) or any(re.fullmatch(rf"{spelling}\d*", word) for word in words):
            return family
    return None


def _of_model(entrant: Entrant, model: Model, given: EntrantIn) -> None:
    if model.role not in POLICIES:
        raise BadInput(
            f"{model.name!r} is a model of role {model.role}, and writes no answers",
            code="wrong_role",
            hint=f"Name a model of role {', '.join(sorted(POLICIES))}.",
        )
    info = ModelInfo.model_validate(model.info) if model.info else None
    form = info.condition if info is not None else None
    if given.score is not None and form is None:
        raise BadInput(
            f"a score was requested from {model.name!r}, a model that does not take scores",
            code="no_score_format",
            hint=f"Only policies of {conditioned_labels()} take scores; leave the score out for others.",
        )
    if form is None and isinstance(given.decoding, Decoding) and given.decoding.guided:
        raise no_guidance(given.decoding.guidance, f"from {model.name!r}, a model that does not take scores")
    entrant.source = "model"
    entrant.model_id = model.id
    entrant.name = model.name
    entrant.method = model.method or model.role
    entrant.content_hash = model.artifact_hash
    if form is not None:
        condition = form.resolve(given.score)
        entrant.score = None if given.score is None and not condition.root else condition
    architecture = info.architecture if info is not None else ""
    entrant.family = given.family or family_of(model.name) or family_of(_words(architecture))


def _chooser(session: Session, project: Project, evaluation: Evaluation, ref: str) -> Model:
    """The reward model that chooses the best of several answers."""
    model = get_model(session, project, ref)
    if model.role != "reward":
        raise BadInput(
            f"{model.name!r} is a model of role {model.role}, which gives no rewards",
            code="wrong_role",
            hint=what_to_name(model.role, ("reward",)),
            errors=[ErrorLocation(location="reward", message="is not a reward model")],
        )
    dialogs = EvaluationPrompt.evaluation_id == evaluation.id, func.jsonb_array_length(EvaluationPrompt.follow_ups) > 0
    if session.scalar(select(EvaluationPrompt.position).where(*dialogs).limit(1)) is not None:
        raise BadInput(
            "the best of several answers is chosen for prompts of one turn, and some of these have more",
            code="several_turns",
            hint="Leave `best_of` out, or evaluate other prompts.",
            errors=[ErrorLocation(location="best_of", message="takes prompts of one turn")],
        )
    return model


def _of_endpoint(session: Session, entrant: Entrant, endpoint: Endpoint, given: EntrantIn) -> None:
    policy = session.get(Model, endpoint.policy_model_id) if endpoint.policy_model_id else None
    score_text(endpoint, policy, given.score)  # or it would be refused when its run begins
    if isinstance(given.decoding, Decoding):
        check_guidance(endpoint, policy, given.decoding.guidance)
    entrant.source = "endpoint"
    entrant.endpoint_id = endpoint.id
    entrant.name = endpoint.name
    entrant.method = (policy.method or policy.role) if policy is not None else None
    entrant.content_hash = policy.artifact_hash if policy is not None else None
    entrant.family = given.family or family_of(endpoint.model)


def _words(architecture: str) -> str:
    """`Qwen2ForCausalLM` as `Qwen2-For-Causal-LM`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", architecture)


def _decoding(entrant: EntrantIn) -> tuple[Decoding, dict[str, float]]:
    """Greedy for one answer, sampled for several, unless something else is asked for; and temperatures by category."""
    sampled = entrant.best_of or entrant.samples
    given = entrant.decoding or ("greedy" if sampled == 1 else "sampled")
    if given == "by_category":
        return Decoding(temperature=DEFAULT_TEMPERATURE), dict(MT_BENCH_TEMPERATURES)
    decoding = Decoding(temperature=1.0 if given == "sampled" else 0.0) if isinstance(given, str) else given
    if decoding.n != 1:
        raise BadInput("give `samples` and not `decoding.n`", code="equal_samples")
    if sampled > 1 and decoding.temperature == 0:
        raise BadInput(
            f"{sampled} samples at temperature 0 would all be identical",
            code="equal_samples",
            hint="Ask for one sample, or for `sampled` decoding.",
            errors=[ErrorLocation(location="decoding", message="needs a temperature above 0")],
        )
    return decoding, {}


def _default_name(session: Session, evaluation: Evaluation, entrant: Entrant) -> str:
    """The model's or endpoint's; with the score where one is asked for; with a number where that is taken."""
    name = entrant.name if entrant.score is None else f"{entrant.name[:110]}_{entrant.score.slug}"[:128]
    if entrant.decoding.get("guidance", 1) != 1:
        name = f"{name[:110]}{guided_suffix(entrant.decoding['guidance'])}"
    if entrant.best_of is not None:
        name = f"{name[:110]}_best_of_{entrant.best_of}"
    check_name(name)
    return free_name(name, names_like(session, Entrant.name, name, Entrant.evaluation_id == evaluation.id))


def _taken(session: Session, evaluation: Evaluation, name: str) -> bool:
    taken = select(Entrant.id).where(Entrant.evaluation_id == evaluation.id, Entrant.name == name)
    return session.scalar(taken) is not None


def decoding_of(entrant: Entrant) -> dict[str, Any]:
    """The decoding as the API shows it: without empty temperatures."""
    return {name: value for name, value in entrant.decoding.items() if name != "temperatures" or value}
