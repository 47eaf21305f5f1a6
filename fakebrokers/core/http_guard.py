"""Serves the HTTP APIs: keeps web pages away from them, and what clients get wrong out of the log."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

_LOG = logging.getLogger("fakebrokers.http")


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether something went wrong on this side; bytes that are no HTTP are only answered with 400."""
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    return not isinstance(error, HttpProcessingError)


_LOG.addFilter(_is_ours)


def runner_of(application: web.Application, **options: Any) -> web.AppRunner:
    """What serves an application; `options` are those of `web.AppRunner`."""
    return web.AppRunner(application, access_log=None, logger=_LOG, **options)


@web.middleware
async def refuse_foreign(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer 403 to a Host that is no address (DNS rebinding), and to anything that a web page sent.

    Raises:
        web.HTTPBadRequest: The body is no HTTP, or the client has left in the middle of it.
    """
    host = request.host.rpartition(":")[0] if not request.host.endswith("]") else request.host
    if not _is_address(host or request.host) or request.headers.get("Origin") is not None:
        return web.Response(status=403, text="this API is for programs on this machine, not for web pages\n")
    try:
        return await handler(request)
    except web.RequestPayloadError as error:
        raise web.HTTPBadRequest(reason=f"expected the rest of a body, got {error}"[:200]) from None
    except ConnectionResetError:
        if request.transport is not None:
            raise
        raise web.HTTPBadRequest from None  # nobody hears it


def _is_address(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
