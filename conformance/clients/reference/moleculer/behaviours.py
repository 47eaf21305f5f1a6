"""What the actions of a served service do; see ADAPTER.md, section 5."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from conformance.clients.adapter import kit
from conformance.clients.reference.moleculer.caller import Upload
from conformance.clients.reference.moleculer.context import ActionError, Context
from conformance.clients.reference.moleculer.serving import Handler
from conformance.clients.reference.moleculer.streams import Incoming

Json = dict[str, Any]
Note = Callable[..., None]
PIECE = 64 * 1024  #: of a source of zeros, which is never held as a whole
SLOW_STOP_S = 1.5


def handler(behaviour: Any, read: Callable[[Context], Note]) -> Handler:
    """The action with that behaviour. Raises `Failure` (unsupported).

    Args:
        read: Makes the note of what is read of the upload of a request.
    """
    if behaviour == "echo":
        return echo
    if not isinstance(behaviour, Mapping):
        raise kit.Failure("unsupported", f"no behaviour {behaviour!r}")
    special = {"nested_call": nested_call, "slow_stop": echo, "object_source": object_source}
    if behaviour.get("special") in special:
        return special[behaviour["special"]]
    if "read_stream" in behaviour or behaviour.get("special") == "object_stream":
        return lambda context: taken(context.stream, read(context))
    return plain(behaviour)


def plain(behaviour: Mapping[str, Any]) -> Handler:
    """A behaviour that does not depend on the request."""

    async def act(context: Context) -> Any:
        if "return" in behaviour:
            return behaviour["return"]
        if "throw" in behaviour:
            raise thrown(behaviour["throw"])
        if "sleep_ms" in behaviour:
            await asyncio.sleep(behaviour["sleep_ms"] / 1000)
            return "slept"
        chunk, breaks = behaviour.get("chunk"), behaviour.get("breaks")
        return Upload(source(behaviour["stream"], chunk, 0, lambda **_: None, breaks))

    if not {"return", "throw", "sleep_ms", "stream"} & set(behaviour):
        raise kit.Failure("unsupported", f"no behaviour {dict(behaviour)!r}")
    return act


def thrown(wanted: Mapping[str, Any]) -> Exception:
    """The error of a ``throw``."""
    message = wanted.get("message", "")
    if wanted.get("plain"):
        return RuntimeError(message)
    return ActionError(message, wanted.get("code", 500), wanted.get("type"), wanted.get("data"))


async def echo(context: Context) -> Any:
    """Gives back the parameters."""
    return context.params


async def nested_call(context: Context) -> Any:
    """Calls another action."""
    assert context.call is not None
    return await context.call(context, context.params["action"], context.params.get("params"))


async def object_source(context: Context) -> Any:
    """Answers with a stream of objects."""
    return Upload(each_of(context.params["objects"]), object_mode=True)


async def each_of(objects: list[Any]) -> AsyncIterator[Any]:
    """Objects as a stream."""
    for one in objects:
        yield one


async def source(
    body: Json, chunk: int | None, every_ms: float, note: Note, breaks: str | None = None
) -> AsyncIterator[bytes]:
    """A body as a stream; made piece by piece as asked for. Raises `RuntimeError` (`breaks`) at last."""
    drawn = 0
    is_zero = body.get("gen") == "zero"
    whole = b"" if is_zero else kit.body_bytes(body)
    length = int(body["len"]) if is_zero else len(whole)
    size = chunk or (PIECE if is_zero else max(1, length))
    for at in range(0, length, size):
        if every_ms:
            await asyncio.sleep(every_ms / 1000)
        piece = bytes(min(size, length - at)) if is_zero else whole[at : at + size]
        drawn += len(piece)
        note(what="drawn", bytes=drawn)
        yield piece
    if breaks is not None:
        raise RuntimeError(breaks)


async def taken(found: Any, note: Note) -> Any:
    """What came as a stream, read to its end; anything else as it is."""
    if not isinstance(found, Incoming):
        return found
    data, objects, chunks = bytearray(), [], 0
    async for piece in found:
        chunks += 1
        if isinstance(piece, bytes):
            data += piece
        else:
            objects.append(piece)
        note(what="read", chunks=chunks, bytes=len(data))
    if objects:
        return {"objects": objects, "chunks": chunks}
    return {"stream": kit.report_body(bytes(data)), "chunks": chunks}
