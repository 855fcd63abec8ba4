"""Which provider asks an endpoint. To add one: a module that implements `chat.Provider`, and its host below."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from steerboard.registry.endpoints.chat import Connection, Provider


def _openai_compatible(connection: Connection) -> Provider:
    # Half a second, which no other request of the API should wait for.
    from steerboard.registry.endpoints.openai_compatible import OpenAICompatible

    return OpenAICompatible(connection)


# Hosts with a protocol of their own. A host decides, for runs and kept answers name an endpoint by its URL.
BY_HOST: dict[str, Callable[[Connection], Provider]] = {}


def connect(connection: Connection) -> Provider:
    """The provider for an endpoint; nothing is sent yet."""
    return BY_HOST.get(httpx.URL(connection.base_url).host, _openai_compatible)(connection)
