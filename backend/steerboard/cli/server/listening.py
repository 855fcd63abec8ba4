"""The socket that a server listens on."""

from __future__ import annotations

import socket

from steerboard.platform.processes.child_process import ServerFailed


def bind(host: str, port: int) -> socket.socket:
    """Called before anything else starts, so that a port in use costs nothing."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio knows it for TCP and sends small answers immediately (TCP_NODELAY).
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ServerFailed(
            f"cannot listen on {host}:{port}: {error.strerror}",
            code="port_in_use",
            hint="Choose another with --port, or --port 0 for any free one.",
        ) from None
    return listener
