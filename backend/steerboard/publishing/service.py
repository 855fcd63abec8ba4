"""What may be pushed, with which card; and the run that does it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.tables import Dataset
from steerboard.platform.names import next_name_of_all
from steerboard.publishing.cards.dataset_card import dataset_card
from steerboard.publishing.cards.facts import ModelFacts, hub_source, model_facts
from steerboard.publishing.cards.model_card import model_card
from steerboard.publishing.schemas import DatasetPush, ModelPush
from steerboard.registry.service import manifest_of
from steerboard.registry.tables import Model
from steerboard.runs.state.lifecycle import InputRef, create_run
from steerboard.runs.tables import Run
from steerboard_contracts.errors import BadInput, ErrorLocation
from steerboard_contracts.run_kinds.push import PushConfig, WeightsForm

_BASE = "base/"


@dataclass(frozen=True)
class WrittenCard:
    text: str
    base: str | None = None


def card_of_model(
    session: Session, model: Model, repo: str, weights: WeightsForm, base: str | None, licence: str | None
) -> WrittenCard:
    """Raises `BadInput` (`not_an_adapter`, `hub_base_unknown`)."""
    facts = model_facts(session, model)
    below = _base_of_adapter(session, facts, base) if weights == "adapter" else None
    return WrittenCard(model_card(facts, repo, weights, below, licence), below)


def card_of_dataset(session: Session, dataset: Dataset, repo: str, licence: str | None) -> WrittenCard:
    return WrittenCard(dataset_card(session, dataset, repo, licence))


def push_model(session: Session, project: Project, model: Model, push: ModelPush, actor: str) -> Run:
    """Raises like `card_of_model`, and `QuotaReached`."""
    card = card_of_model(session, model, push.repo, push.weights, push.base, push.licence)
    config = PushConfig(
        repo=push.repo,
        private=push.private,
        weights=push.weights,
        base=card.base,
        card=card.text if push.card is None else push.card,
    )
    return _start(session, project, f"push-{model.name}", config, "model", InputRef(model=model.id), push, actor)


def push_dataset(session: Session, project: Project, dataset: Dataset, push: DatasetPush, actor: str) -> Run:
    """Raises `QuotaReached`."""
    card = card_of_dataset(session, dataset, push.repo, push.licence).text if push.card is None else push.card
    config = PushConfig(repo=push.repo, private=push.private, card=card)
    return _start(session, project, f"push-{dataset.name}", config, "data", InputRef(dataset=dataset.id), push, actor)


def _start(
    session: Session,
    project: Project,
    name: str,
    config: PushConfig,
    slot: str,
    ref: InputRef,
    push: DatasetPush,
    actor: str,
) -> Run:
    alone = (Run.project_id == project.id, Run.pipeline_id.is_(None))
    return create_run(
        session,
        project,
        name=next_name_of_all(session, project.id, Run.name, name[:100], *alone),
        config=config,
        inputs={slot: ref},
        pool=push.pool,
        reuse=False,
        created_by=actor,
    )


def _base_of_adapter(session: Session, facts: ModelFacts, given: str | None) -> str:
    """The hub name of the weights that are below the adapter."""
    model = facts.model
    if facts.info.lora is None:
        raise BadInput(
            f"{model.name} is a whole model, not an adapter",
            code="not_an_adapter",
            hint="Push it merged, which sends its weights as they are.",
            errors=[ErrorLocation(location="body.weights", message="the model has no adapter")],
        )
    if given is not None:
        return given
    parent = session.get(Model, model.parent_id) if model.parent_id else None
    hub = hub_source(parent) if parent is not None else None
    if parent is None or hub is None or not _has_below(session, model, parent):
        raise BadInput(
            f"the model below the adapter {model.name} was not imported from the hub, so no one could load it there",
            code="hub_base_unknown",
            hint="Push it merged; or push the model below first, and name it as `base`.",
            errors=[ErrorLocation(location="body.base", message="the hub name of the model below is not known")],
        )
    return str(hub)


def _has_below(session: Session, adapter: Model, parent: Model) -> bool:
    """Whether the weights below the adapter are the parent's own, untouched."""
    below = {
        file["sha256"]
        for file in manifest_of(session, adapter).files
        if file["path"].startswith(_BASE) and file["path"].endswith(".safetensors")
    }
    own = {file["sha256"] for file in manifest_of(session, parent).files if file["path"].endswith(".safetensors")}
    return below == own
