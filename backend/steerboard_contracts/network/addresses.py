"""Which addresses of the network a URL of a user may lead to: public ones, and what the operator has named."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
# Inside of the public range, but they carry an IPv4 address (6to4, Teredo) or are for documentation and tests.
_SPECIAL_6 = tuple(map(ipaddress.IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
_SPECIAL_4 = tuple(map(ipaddress.IPv4Network, ("192.0.0.0/24", "192.88.99.0/24")))
_WITH_PORT = re.compile(r"\[(?P<six>[^\]]+)\]:(?P<port6>\d+)|(?P<name>[^\[\]]*):(?P<port>\d+)")
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?")


def is_public(address: Address) -> bool:
    """Whether anyone on the internet may be there. IPv4 written as IPv6 (mapped, NAT64, 6to4) never is."""
    if isinstance(address, ipaddress.IPv6Address):
        return address in _PUBLIC_6 and address.is_global and not any(address in network for network in _SPECIAL_6)
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in network for network in _SPECIAL_4)
    )


@dataclass(frozen=True)
class _Entry:
    """Either `network` or `host`; without a port, every port."""

    host: str
    network: Network | None
    port: int | None


class AllowList:
    """`STEERBOARD_ALLOWED_PRIVATE`: host names, addresses and CIDRs with commas between them, each with an optional
    `:port` (an IPv6 one then in brackets)."""

    def __init__(self, text: str) -> None:
        """Raises ValueError for any other entry."""
        self._entries = [_entry(part.strip()) for part in text.split(",") if part.strip()]

    def allows(self, host: str, address: Address, port: int) -> bool:
        """Whether the operator named this host, or a network that contains the address."""
        name = host.lower().rstrip(".")
        return any(
            entry.port in (None, port) and (address in entry.network if entry.network else entry.host == name)
            for entry in self._entries
        )


def _entry(text: str) -> _Entry:
    network = _network(text)
    if network is not None:
        return _Entry("", network, None)
    host, port = text, None
    match = _WITH_PORT.fullmatch(text)
    if match is not None:
        host, port = match["six"] or match["name"], int(match["port6"] or match["port"])
        network = _network(host)
    host = host.lower().rstrip(".")
    if (network is None and not _HOST.fullmatch(host)) or not (port is None or 0 < port < 65536):
        raise ValueError(f"{text!r} is not a host name, address or network, with or without `:port`")
    return _Entry("" if network else host, network, port)


def _network(text: str) -> Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
