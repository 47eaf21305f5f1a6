"""Small things that most adapters need."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def op(name: str) -> Callable[[F], F]:
    """Mark a method as the implementation of an op. Only marked ops are declared in the hello.

    The method takes the members of ``args`` as keyword arguments; what the protocol lets the runner leave
    out is filled in (`base.LEFT_OUT`). It may also ask for ``args`` as a whole, ``timeout_ms`` and
    ``request_id``. It returns the ``result`` object, or raises `Failure` or whatever the library raised.
    ``async def`` runs on the loop, ``def`` in a thread.
    """

    def mark(function: F) -> F:
        function.op = name  # type: ignore[attr-defined]
        return function

    return mark


def limits(**milliseconds: int) -> dict[str, int]:
    """Time-outs that the library fixes by itself, by what they end: connect, request, publish, close."""
    return {f"{what}_timeout_ms": value for what, value in milliseconds.items()}


def host_port(endpoint: str) -> tuple[str, int]:
    """``127.0.0.1:5552`` or ``[::1]:5552`` in two parts."""
    host, _, port = endpoint.rpartition(":")
    return host.strip("[]"), int(port)


def tls_context(options: Mapping[str, Any]) -> ssl.SSLContext | None:
    """The client context for ``options.tls``, or None without it."""
    tls = options.get("tls")
    return ssl.create_default_context(cafile=tls.get("ca_file")) if tls else None


def drop_sockets(loop: asyncio.AbstractEventLoop) -> None:
    """Abort every asyncio connection of this loop, whatever holds it."""
    for transport in list(getattr(loop, "_transports", {}).values()):  # private, but nothing else is complete
        transport.abort()
