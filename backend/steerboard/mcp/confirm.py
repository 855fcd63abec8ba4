"""What cannot be undone is confirmed: by the person at the client, or where the client cannot ask, by an argument."""

from __future__ import annotations

from mcp.server.mcpserver import (
    AcceptedElicitation,
    CancelledElicitation,
    DeclinedElicitation,
    Elicit,
)
from pydantic import BaseModel, Field

from steerboard.mcp.boards import Ctx
from steerboard.mcp.refusals import Refused


class Confirmation(BaseModel):
    """What a person is asked."""

    confirm: bool = Field(description="Do it.")


Outcome = AcceptedElicitation[Confirmation] | DeclinedElicitation | CancelledElicitation


def ask(ctx: Ctx, question: str, confirm: bool) -> Elicit[Confirmation] | Confirmation:
    """Asks the person, whatever the agent gives. Raises `Refused` (`confirmation_needed`) where the client cannot ask
    and the call does not confirm."""
    if _can_ask(ctx):
        return Elicit(question, Confirmation)
    if not confirm:
        raise Refused(
            question,
            code="confirmation_needed",
            hint="This client cannot ask its user. Ask them yourself, then call again with confirm=true.",
        )
    return Confirmation(confirm=True)


def refuse_unless_confirmed(outcome: Outcome) -> None:
    """Raises `Refused` (`declined`)."""
    if not (isinstance(outcome, AcceptedElicitation) and outcome.data.confirm):
        raise Refused(
            "The user did not confirm it; nothing was done.",
            code="declined",
            hint="Do not try again unless the user asks for it.",
        )


def _can_ask(ctx: Ctx) -> bool:
    capabilities = ctx.client_capabilities
    asking = capabilities.elicitation if capabilities is not None else None
    return asking is not None and (asking.form is not None or asking.url is None)
