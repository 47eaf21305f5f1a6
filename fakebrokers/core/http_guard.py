"""Serves the HTTP APIs: limits what clients send, keeps web pages away, and clients' mistakes off the log."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from fakebrokers.extras import needs

with needs("http", "what is served over HTTP"):
    from aiohttp import web
    from aiohttp.http_exceptions import HttpProcessingError

__all__ = ["Bodies", "refuse_foreign", "runner_of", "web"]

_LOG = logging.getLogger("fakebrokers.http")

#: Bytes of a body that always has room, so that nobody who sends large ones keeps others out.
SMALL_BODY = 64 * 1024


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether something went wrong on this side; bytes that are no HTTP are only answered with 400."""
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    return not isinstance(error, HttpProcessingError)


_LOG.addFilter(_is_ours)


def runner_of(application: web.Application, **options: Any) -> web.AppRunner:
    """What serves an application; `options` are those of `web.AppRunner`."""
    # packed bodies are refused: 300 kB can hold 300 MB
    return web.AppRunner(application, access_log=None, logger=_LOG, auto_decompress=False, **options)


class Bodies:
    """Reads the bodies of requests; those that are not complete have a limit together.

    Args:
        largest: Bytes of one body.
        total: Bytes of all that are being read.
    """

    def __init__(self, largest: int, total: int) -> None:
        self.largest = largest
        self.total = total
        self.held = 0  #: bytes of all that are being read

    async def read(self, request: web.Request) -> bytes:
        """The whole body.

        Raises:
            web.HTTPRequestEntityTooLarge: It is too large.
            web.HTTPServiceUnavailable: There is no room for it beside those that others send.
        """
        if (request.content_length or 0) > self.largest:
            raise web.HTTPRequestEntityTooLarge(self.largest, request.content_length or 0)
        data = bytearray()
        try:
            async for piece in request.content.iter_any():
                self.held += len(piece)
                data += piece
                if len(data) > self.largest:
                    raise web.HTTPRequestEntityTooLarge(self.largest, len(data))
                if len(data) > SMALL_BODY and self.held > self.total:
                    told = f"expected at most {self.total} bytes of unfinished requests; try again later"
                    raise web.HTTPServiceUnavailable(reason=told)
            return bytes(data)
        finally:
            self.held -= len(data)
            data.clear()  # what went wrong may be kept, with the frame that holds this


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
    if (packed := request.headers.get("Content-Encoding", "identity")).lower() != "identity":
        told = f"expected a body that is not packed, got Content-Encoding {packed[:20]!r}"
        raise web.HTTPUnsupportedMediaType(reason=told)
    try:
        return await handler(request)
    except web.RequestPayloadError as error:
        raise web.HTTPBadRequest(reason=f"expected the rest of a body, got {error}"[:200]) from None
    except ConnectionResetError:
        if request.transport is not None:
            raise
        raise web.HTTPBadRequest from None  # nobody hears it


def _is_address(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
