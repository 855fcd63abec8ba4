"""Endpoints: OpenAI-compatible servers that are asked for answers. Their keys are sealed and never shown."""

from __future__ import annotations

import time
from typing import Any

import httpx
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.errors import InUse, NameTaken
from steerboard.platform.http.errors import NotFound
from steerboard.platform.names import check_name, find
from steerboard.platform.security.safe_http import BadUrl, check_url, refuse_private
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard.registry.endpoints.chat import Connection, guidance_of
from steerboard.registry.endpoints.providers import connect
from steerboard.registry.endpoints.schemas import EndpointChange, EndpointCheck, EndpointCreate, EndpointProblem
from steerboard.registry.service import get_model
from steerboard.registry.tables import Endpoint, Model
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.decoding import no_guidance
from steerboard_contracts.errors import BadInput, SteerboardError
from steerboard_contracts.models import ModelInfo

_CHECK_SECONDS = 10.0


def endpoints_of(session: Session, project: Project) -> list[Endpoint]:
    """The endpoints by name."""
    return list(session.scalars(select(Endpoint).where(Endpoint.project_id == project.id).order_by(Endpoint.name)))


def get_endpoint(session: Session, project: Project, ref: str) -> Endpoint:
    """The endpoint by id or name. Raises `NotFound`, also for another project's."""
    endpoint = find(session, select(Endpoint).where(Endpoint.project_id == project.id), Endpoint.id, Endpoint.name, ref)
    if endpoint is None:
        raise NotFound(
            f"there is no endpoint {ref!r}",
            code="unknown_endpoint",
            hint="The dashboard's Settings, or GET endpoints, list the existing ones.",
        )
    return endpoint


def create(session: Session, settings: Settings, secrets: Secrets, project: Project, given: EndpointCreate) -> Endpoint:
    """Raises `BadInput` (`invalid_name`), `BadUrl`, `AddressRefused`, `NameTaken`, `NotFound` for the policy model."""
    _check_free(session, project, given.name)
    policy = get_model(session, project, given.policy_model) if given.policy_model else None
    endpoint = Endpoint(
        project_id=project.id,
        name=given.name,
        base_url=_base_url(settings, given.base_url),
        model=given.model,
        api_key_sealed=secrets.seal(given.api_key.get_secret_value()) if given.api_key else None,
        policy_model_id=policy.id if policy else None,
        guides=given.guides,
    )
    session.add(endpoint)
    session.flush()
    session.refresh(endpoint)
    return endpoint


def change(
    session: Session,
    settings: Settings,
    secrets: Secrets,
    project: Project,
    endpoint: Endpoint,
    given: EndpointChange,
) -> None:
    """Changes only what was given. Raises like `create`, and `BadInput` (`api_key_needed`) for a new server without its
    key: a stored key is only sent to the server it was entered for.
    """
    fields: dict[str, Any] = {name: getattr(given, name) for name in given.model_fields_set}
    if given.name is not None and given.name != endpoint.name:
        _check_free(session, project, given.name)
        endpoint.name = given.name
    if given.base_url is not None:
        base_url = _base_url(settings, given.base_url)
        if endpoint.api_key_sealed and "api_key" not in fields and _origin(base_url) != _origin(endpoint.base_url):
            raise BadInput(
                "the new base URL points to another server, to which the stored key is not sent",
                code="api_key_needed",
                hint="Give `api_key` too, or null for a server that needs none.",
            )
        if base_url != endpoint.base_url:
            endpoint.guides = False  # unless it is given, too: another server may know nothing of guidance
        endpoint.base_url = base_url
    if given.model is not None:
        endpoint.model = given.model
    if "api_key" in fields:
        endpoint.api_key_sealed = secrets.seal(given.api_key.get_secret_value()) if given.api_key else None
    if "policy_model" in fields:
        endpoint.policy_model_id = get_model(session, project, given.policy_model).id if given.policy_model else None
    if given.guides is not None:
        endpoint.guides = given.guides
    session.flush()


def delete(session: Session, endpoint: Endpoint) -> None:
    """Raises `InUse` when something refers to it."""
    try:
        with session.begin_nested():
            session.delete(endpoint)
            session.flush()
    except IntegrityError:
        raise InUse(f"something still refers to endpoint {endpoint.name!r}", hint="Delete that first.") from None


def key_of(secrets: Secrets, endpoint: Endpoint) -> str | None:
    """The key for a `Connection`. Raises `SecretUnreadable`."""
    return secrets.open(endpoint.api_key_sealed) if endpoint.api_key_sealed else None


def score_text(endpoint: Endpoint, policy: Model | None, score: Condition | None) -> str | None:
    """How `score` is written for `policy`, the model of ours that the endpoint serves; None leaves it to the server.

    Raises `BadInput` (`no_score_format`, `unknown_attribute`)."""
    if score is None:
        return None
    info = ModelInfo.model_validate(policy.info) if policy is not None and policy.info else None
    if info is None or info.condition is None:
        raise BadInput(
            f"a score was requested from endpoint {endpoint.name!r}, which does not serve a policy that takes scores",
            code="no_score_format",
            hint="Set which registered policy the endpoint serves, or omit the score.",
        )
    return info.condition.text(info.condition.resolve(score))


def check_guidance(endpoint: Endpoint, policy: Model | None, guidance: float) -> None:
    """Raises `BadInput` (`no_guidance`) for guidance that the endpoint cannot give. `policy`: as in `score_text`."""
    if guidance == 1:
        return
    info = ModelInfo.model_validate(policy.info) if policy is not None and policy.info else None
    if info is None or info.condition is None:
        raise no_guidance(guidance, f"from endpoint {endpoint.name!r}, which does not serve a policy that takes scores")
    guidance_of(endpoint.guides, guidance, endpoint.name)


def check(settings: Settings, secrets: Secrets, endpoint: Endpoint) -> EndpointCheck:
    """Ask the endpoint for its models, now. Every failure is a part of the answer. Touches no database."""
    began = time.monotonic()
    models: list[str] = []
    problem: EndpointProblem | None = None
    try:
        key = key_of(secrets, endpoint)
        models = connect(Connection(settings, endpoint.base_url, key, _CHECK_SECONDS, _CHECK_SECONDS)).list_models()
        if endpoint.model not in models:
            problem = EndpointProblem(
                code="model_not_served",
                detail=f"the endpoint answers, but does not list a model {endpoint.model!r}",
                hint="Change the endpoint's model to one of those that it lists.",
            )
    except SteerboardError as error:
        problem = EndpointProblem(code=error.code, detail=error.detail, hint=error.hint)
    return EndpointCheck(ok=problem is None, models=models, seconds=time.monotonic() - began, problem=problem)


def _check_free(session: Session, project: Project, name: str) -> None:
    """An entrant is named by one word, so a name means a model or an endpoint and never both."""
    check_name(name)
    for table, what in ((Endpoint, "an endpoint"), (Model, "a model")):
        if session.scalar(select(table.id).where(table.project_id == project.id, table.name == name)):
            raise NameTaken(f"there is already {what} {name!r}", hint="Choose another name.")


def _base_url(settings: Settings, given: str) -> str:
    url = check_url(given)
    if "?" in url:
        raise BadUrl("a base URL has no query", hint="Leave out `?` and what follows.")
    refuse_private(settings, url)
    return url.rstrip("/")


def _origin(url: str) -> tuple[str, str, int | None]:
    parsed = httpx.URL(url)
    return parsed.scheme, parsed.host, parsed.port
