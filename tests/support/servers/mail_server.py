"""A real SMTP server on a free port of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, cast

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword


@dataclass
class MailServer:
    """`letters`: what came, with the recipients of each. `refuses`: whom it does not take; `answer`: to each letter."""

    port: int = 0
    letters: list[tuple[list[str], EmailMessage]] = field(default_factory=list)
    logins: list[tuple[str, str]] = field(default_factory=list)
    refuses: tuple[str, ...] = ()
    answer: str = "250 taken"

    async def handle_RCPT(self, _server: SMTP, _session: Any, envelope: Any, address: str, _options: Any) -> str:
        if address in self.refuses:
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: SMTP, _session: Any, envelope: Any) -> str:
        if self.answer.startswith("250"):
            letter = cast(EmailMessage, message_from_bytes(envelope.content, policy=policy.default))
            self.letters.append((list(envelope.rcpt_tos), letter))
        return self.answer

    def authenticate(self, _server: SMTP, _session: Any, _envelope: Any, _mechanism: str, given: LoginPassword) -> Any:
        self.logins.append((given.login.decode(), given.password.decode()))
        return AuthResult(success=given.password == b"hush")


class _OnAFreePort(Controller):
    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@contextmanager
def mail_server() -> Iterator[MailServer]:
    served = MailServer()
    controller = _OnAFreePort(
        served, hostname="127.0.0.1", port=0, authenticator=served.authenticate, auth_require_tls=False
    )
    controller.start()
    try:
        served.port = controller.port
        yield served
    finally:
        controller.stop()
