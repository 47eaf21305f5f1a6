"""Raw bytes in words, for debugging: which frames they hold."""

from __future__ import annotations

from collections.abc import Iterator

from fakebrokers.core.frames import Frame, Malformed, kind_of
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.frames import FRAMES, StreamFrame

_ARROWS = {"client": "client -> server", "server": "server -> client", "both": "client or server"}
_SHOWN = 48  #: bytes of a block that are printed
_KEYS = 8  #: keys of a batch that are printed


def explain(data: bytes) -> str:
    """The frames in `data`, of whichever side, one field per line. Credentials are left out.

    For debugging: the text may change. Never raises.
    """
    server, client = StreamCodec("server"), StreamCodec("client")
    lines: list[str] = []
    for (as_server, size), (as_client, _) in zip(server.feed(data), client.feed(data), strict=True):
        is_answer = isinstance(as_server, Malformed) and not isinstance(as_client, Malformed)
        lines.extend(_describe(as_client if is_answer else as_server, size))
    if server.partial:
        lines.append(f"{server.partial} bytes of a frame that is not whole")
    return "\n".join(lines)


def _describe(frame: Frame, size: int) -> Iterator[str]:
    who = _ARROWS[frame.SENDER] if isinstance(frame, StreamFrame) else "not readable"
    yield f"{kind_of(frame)}  {who}  {size} bytes"
    spec = FRAMES[type(frame)]
    for name in frame.__struct_fields__:
        value = getattr(frame, name)
        if isinstance(value, Chunk):
            for inner in value.__struct_fields__:
                yield f"    {name}.{inner} = {_shown(getattr(value, inner))}"
        else:
            yield f"    {name} = {'(secret)' if name in spec.secret else _shown(value)}"
    if spec.items:
        keys = [str(key) for key in spec.items.keys(frame)[:_KEYS]]
        more = spec.items.count(frame) - len(keys)
        yield f"    items: {', '.join(keys)}" + (f" and {more} more" if more > 0 else "")


def _shown(value: object) -> str:
    if isinstance(value, bytes) and len(value) > _SHOWN:
        return f"{value[:_SHOWN]!r}... ({len(value)} bytes)"
    return repr(value)
