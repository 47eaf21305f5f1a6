"""Keeps web pages away from the control APIs on loopback."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable

from aiohttp import web


@web.middleware
async def refuse_foreign(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer 403 to a Host that is no address (DNS rebinding), and to anything that a web page sent."""
    host = request.host.rpartition(":")[0] if not request.host.endswith("]") else request.host
    if not _is_address(host or request.host) or request.headers.get("Origin") is not None:
        return web.Response(status=403, text="this API is for programs on this machine, not for web pages\n")
    return await handler(request)


def _is_address(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
