"""Which endpoint a run asks: pinned when the run is made, and found again when it begins."""

from __future__ import annotations

from typing import TypeVar

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.registry.endpoints.service import get_endpoint
from steerboard.registry.tables import Endpoint
from steerboard_contracts.errors import BadInput
from steerboard_contracts.fields import Config
from steerboard_contracts.pinned_endpoint import AsksEndpoint, PinnedEndpoint

AnyConfig = TypeVar("AnyConfig", bound=Config)


class EndpointChanged(BadInput):
    """A run was made for another server than the endpoint names now, to which its key would go."""

    code = "endpoint_changed"
    title = "The endpoint has another address now"


def with_pin(session: Session, project: Project, config: AnyConfig) -> AnyConfig:
    """The config with the endpoint that it names as it is now. Raises `NotFound`."""
    if not isinstance(config, AsksEndpoint):
        return config
    pin, name = None, getattr(config, "endpoint", None)
    if name is not None:
        endpoint = get_endpoint(session, project, name)
        pin = PinnedEndpoint(id=endpoint.id, base_url=endpoint.base_url, model=endpoint.model)
    return config.model_copy(update={"pinned_endpoint": pin})


def endpoint_of(session: Session, project: Project, pin: PinnedEndpoint) -> Endpoint:
    """What was pinned, under whatever name; its model may be another one now, and is not asked. Raises `BadInput`
    (`unknown_endpoint`), `EndpointChanged`."""
    endpoint = session.get(Endpoint, pin.id)
    if endpoint is None or endpoint.project_id != project.id:
        raise BadInput(
            "the endpoint that the run was made for was deleted",
            code="unknown_endpoint",
            hint="Start another run; one of the same name is another endpoint.",
        )
    if endpoint.base_url != pin.base_url:
        raise EndpointChanged(
            f"the run was made for the endpoint at {pin.base_url}, which is at {endpoint.base_url} now",
            hint="Start another run, or give the endpoint its former address again.",
        )
    return endpoint
