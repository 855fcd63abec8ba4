"""E-mail by the operator's SMTP server (`STEERBOARD_SMTP_HOST` and what belongs to it)."""

from __future__ import annotations

import contextlib
import smtplib
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import format_datetime, localtime

from steerboard.platform.settings import Settings

ACCEPTED = 250
_STEP_SECONDS = 10.0
# Shorter than a delivery's lease, so that no other sender begins while this one still talks to the server.
_TOTAL_SECONDS = 45.0


@dataclass(frozen=True)
class Letter:
    """`id` names the message, so that mail programs recognise one that is sent again."""

    id: str
    recipients: tuple[str, ...]
    subject: str
    text: str


class NotSent(Exception):
    """No one got it. `status`: the server's, None where it gave none."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


def is_set_up(settings: Settings) -> bool:
    return bool(settings.smtp_host and settings.mail_from)


def send(settings: Settings, letter: Letter) -> list[str]:
    """Returns the recipients that the server refused, with its words. Raises `NotSent`."""
    if not is_set_up(settings):
        raise NotSent("mail_not_set_up: this server has no STEERBOARD_SMTP_HOST and STEERBOARD_MAIL_FROM")
    try:
        with _connected(settings) as server:
            refused = server.send_message(_message(settings, letter), to_addrs=list(letter.recipients))
    except smtplib.SMTPRecipientsRefused as error:
        raise NotSent("; ".join(_refusals(error.recipients)), next(iter(error.recipients.values()))[0]) from None
    except smtplib.SMTPResponseException as error:
        raise NotSent(f"answered {error.smtp_code}: {_words(error.smtp_error)}", error.smtp_code) from None
    except TimeoutError:
        raise NotSent(f"no answer within {_STEP_SECONDS:.0f} s") from None
    except (smtplib.SMTPException, OSError, ValueError) as error:
        raise NotSent(str(error) or type(error).__name__) from None
    return _refusals(refused)


@contextlib.contextmanager
def _connected(settings: Settings) -> Iterator[smtplib.SMTP]:
    context = ssl.create_default_context()
    if settings.smtp_security == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(
            settings.smtp_host, settings.smtp_port, timeout=_STEP_SECONDS, context=context
        )
    else:
        server = smtplib.SMTP(settings.smtp_host, settings.smtp_port, timeout=_STEP_SECONDS)
    watch = threading.Timer(_TOTAL_SECONDS, _hang_up, [server])
    watch.daemon = True
    watch.start()
    try:
        if settings.smtp_security == "starttls":
            server.starttls(context=context)
        if settings.smtp_user:
            server.login(settings.smtp_user, settings.smtp_password.get_secret_value())
        yield server
        with contextlib.suppress(smtplib.SMTPException, OSError):
            server.quit()
    finally:
        watch.cancel()
        server.close()


def _hang_up(server: smtplib.SMTP) -> None:
    """Wakes the thread that waits for a server of endless patience."""
    with contextlib.suppress(OSError):
        if server.sock is not None:
            server.sock.shutdown(socket.SHUT_RDWR)


def _message(settings: Settings, letter: Letter) -> EmailMessage:
    message = EmailMessage()
    message["From"] = settings.mail_from
    # Recipients need not know each other.
    message["To"] = "undisclosed-recipients:;" if len(letter.recipients) > 1 else letter.recipients[0]
    message["Subject"] = letter.subject
    message["Date"] = format_datetime(localtime())
    message["Message-ID"] = f"<{letter.id}@{settings.mail_from.rpartition('@')[2].rstrip('>')}>"
    # Machines that answer, such as "out of office", leave it alone.
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(letter.text)
    return message


def _refusals(refused: dict[str, tuple[int, bytes]]) -> list[str]:
    return [f"{address} ({code} {_words(reply)})" for address, (code, reply) in refused.items()]


def _words(reply: bytes | str) -> str:
    return reply if isinstance(reply, str) else reply.decode(errors="replace")
