"""Every frame of the protocol.

The classes stand in `frames_connection`, `frames_publishing`, `frames_consuming` and `frames_streams`; each
says itself what faults, journal and checkers need to know about it.
"""

from __future__ import annotations

from fakebrokers.core.frames import Frame, frame_table, frames_in
from fakebrokers.rabbitmq_stream import frames_connection, frames_consuming, frames_publishing, frames_streams
from fakebrokers.rabbitmq_stream.chunk import Chunk as Chunk  # noqa: PLC0414 - fields of frames hold it
from fakebrokers.rabbitmq_stream.frames_base import *  # noqa: F403 - one name for all five modules
from fakebrokers.rabbitmq_stream.frames_base import RESPONSE_BIT, Request, Response, StreamFrame
from fakebrokers.rabbitmq_stream.frames_connection import *  # noqa: F403
from fakebrokers.rabbitmq_stream.frames_consuming import *  # noqa: F403
from fakebrokers.rabbitmq_stream.frames_publishing import *  # noqa: F403
from fakebrokers.rabbitmq_stream.frames_streams import *  # noqa: F403
from fakebrokers.rabbitmq_stream.wiretypes import BrokerAddress as BrokerAddress  # noqa: PLC0414 - fields of frames hold it
from fakebrokers.rabbitmq_stream.wiretypes import CommandVersions as CommandVersions  # noqa: PLC0414 - fields of frames hold it
from fakebrokers.rabbitmq_stream.wiretypes import StreamMetadata as StreamMetadata  # noqa: PLC0414 - fields of frames hold it

FRAMES = frame_table(frames_in(frames_connection, frames_publishing, frames_consuming, frames_streams))

_BY_KEY: dict[int, type[StreamFrame]] = {kind.KEY: kind for kind in FRAMES if issubclass(kind, StreamFrame)}


def answer(request: Frame, code: int) -> Response | None:
    """The plain answer to `request` with this code and nothing found; None if there is no such frame.

    Metadata has no code of its own; one-way commands have no answer.
    """
    if not isinstance(request, Request):
        return None
    kind = _BY_KEY.get(request.KEY | RESPONSE_BIT)
    return kind(request.correlation_id, code) if kind and issubclass(kind, Response) else None
