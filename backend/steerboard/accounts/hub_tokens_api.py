"""The hub token of a project over HTTP. It goes in and never comes out."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.accounts.hub_tokens import server_has_token, set_hub_token
from steerboard.platform.http.errors import problems

router = Router(prefix="/hub-token", tags=["projects"])


class HubTokenChange(BaseModel):
    model_config = ConfigDict(extra="forbid")

    token: Annotated[SecretStr, Field(min_length=1, max_length=4096, description="Stored sealed, never shown again.")]

    @field_validator("token")
    @classmethod
    def _sendable(cls, token: SecretStr) -> SecretStr:
        if not all("!" <= letter <= "~" for letter in token.get_secret_value()):
            raise ValueError("a token has only printable ASCII characters and no spaces")
        return token


class HubTokenOut(BaseModel):
    """The source of the token with which the hub is asked: the project's own, the environment of the server, or null
    where neither has one. Workers on other machines use their own environment."""

    source: Literal["project", "server"] | None


@router.get("", responses=problems(404))
def show_hub_token(session: Db, access: Annotated[Access, Depends(AccessTo("read"))]) -> HubTokenOut:
    return hub_token_out(access)


@router.put("", responses=problems(404))
def change_hub_token(
    request: Request, body: HubTokenChange, session: Db, access: Annotated[Access, Depends(AccessTo("write"))]
) -> HubTokenOut:
    """Set the project's token. The hub is not asked whether it knows it."""
    set_hub_token(session, request.app.state.secrets, access.project, body.token.get_secret_value())
    audit(
        session, access, "project.hub_token", f"project {access.project.name} {access.project.id}", {"has_token": True}
    )
    return hub_token_out(access)


@router.delete("", status_code=204, responses=problems(404))
def delete_hub_token(request: Request, session: Db, access: Annotated[Access, Depends(AccessTo("write"))]) -> None:
    """Remove the project's token; that of the environment is used again."""
    set_hub_token(session, request.app.state.secrets, access.project, None)
    audit(
        session, access, "project.hub_token", f"project {access.project.name} {access.project.id}", {"has_token": False}
    )


def hub_token_out(access: Access) -> HubTokenOut:
    if access.project.hub_token_sealed is not None:
        return HubTokenOut(source="project")
    return HubTokenOut(source="server" if server_has_token() else None)
