"""How a message gets to its receiver: webhooks by the scheme of Standard Webhooks (`webhook-id`, `webhook-timestamp`,
`webhook-signature`), Slack by an incoming webhook, e-mail by SMTP. Nothing here touches the database.
"""

from __future__ import annotations

import base64
import datetime as dt
import secrets as randomness
import uuid
from dataclasses import dataclass
from typing import Any

import httpx
import orjson
from standardwebhooks import Webhook as Signer

from steerboard.notices import mail, messages
from steerboard.platform.security.safe_http import open_client, read_start
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard_contracts.errors import SteerboardError

SECRET_PREFIX = "whsec_"
TIMEOUT_SECONDS = 10.0
_SHOWN = 200


@dataclass(frozen=True)
class Parcel:
    """All that sending needs. `id` is that of the first delivery, and stays the same when it is sent again. Only
    digests have several `payloads`."""

    id: uuid.UUID
    project: str
    channel: str
    url: str | None
    recipients: tuple[str, ...]
    secret_sealed: str | None
    payloads: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class DeliveryResult:
    """`error` is None for a success; `status` is None when there was no answer. `refused`: who did not get it although
    others did."""

    status: int | None
    error: str | None
    refused: str | None = None


def new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(randomness.token_bytes(24)).decode()


def send(settings: Settings, secrets: Secrets, parcel: Parcel) -> DeliveryResult:
    """One message. Every failure is an outcome."""
    try:
        if parcel.channel == "email":
            return _send_mail(settings, parcel)
        secret = secrets.open(parcel.secret_sealed or "")
        if parcel.channel == "slack":
            body = orjson.dumps({"text": messages.slack(parcel.payloads)})
            return _post(settings, secret, body, {})
        body = orjson.dumps(parcel.payloads[0])
        return _post(settings, parcel.url or "", body, _signed_headers(secret, str(parcel.id), body))
    except SteerboardError as error:
        return DeliveryResult(None, f"{error.code}: {error.detail}")


def _signed_headers(secret: str, id_: str, body: bytes) -> dict[str, str]:
    at = dt.datetime.now(dt.UTC).replace(microsecond=0)
    return {
        "webhook-id": id_,
        "webhook-timestamp": f"{at.timestamp():.0f}",
        "webhook-signature": Signer(secret).sign(id_, at, body.decode()),
    }


def _post(settings: Settings, url: str, body: bytes, headers: dict[str, str]) -> DeliveryResult:
    sent = {**headers, "Content-Type": "application/json"}
    try:
        with open_client(settings, timeout_seconds=TIMEOUT_SECONDS, total_seconds=TIMEOUT_SECONDS) as client:
            with client.stream("POST", url, content=body, headers=sent) as response:
                if response.is_success:
                    return DeliveryResult(response.status_code, None)
                words = _words(response)
                return DeliveryResult(
                    response.status_code, f"answered {response.status_code}" + (f": {words}" if words else "")
                )
    except httpx.TimeoutException:
        return DeliveryResult(None, f"no answer within {TIMEOUT_SECONDS:.0f} s")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return DeliveryResult(None, str(error) or type(error).__name__)


def _words(response: httpx.Response) -> str:
    """The start of the receiver's error message. If it is cut short, that changes nothing."""
    try:
        body, _ = read_start(response, 4 * _SHOWN)
    except httpx.HTTPError:
        return ""
    return _shown(body.decode(errors="replace"))


def _send_mail(settings: Settings, parcel: Parcel) -> DeliveryResult:
    letter = mail.Letter(
        id=str(parcel.id),
        recipients=parcel.recipients,
        subject=messages.subject(parcel.payloads, parcel.project),
        text=messages.plain(parcel.payloads),
    )
    try:
        refused = mail.send(settings, letter)
    except mail.NotSent as error:
        return DeliveryResult(error.status, _shown(error.reason))
    return DeliveryResult(mail.ACCEPTED, None, _shown(f"refused: {'; '.join(refused)}") if refused else None)


def _shown(text: str) -> str:
    return " ".join(text.replace("\x00", "").split())[:_SHOWN]
