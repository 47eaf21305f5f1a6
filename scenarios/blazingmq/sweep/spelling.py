"""What a broker may also write, and a client reads over (docs/protocols/blazingmq.md, 1 and 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import pack

from msgspec.structs import replace

from fakebrokers.blazingmq.codec import BlazingCodec, event_bytes
from fakebrokers.blazingmq.codes import EventType
from fakebrokers.blazingmq.frames import Ack, BrokerResponse, Push
from fakebrokers.blazingmq.options import PushOption, read_options, write_options
from fakebrokers.core.frames import Frame
from fakebrokers.errors import WireError

UNKNOWN = 0x2A  #: a type of events that there is not
STRANGE = pack(">II", 0x15 << 26 | 2, 7)  #: an option of a type that there is not, of two words
PACKED = pack(">I", 0x15 << 26 | 1 << 25 | 5)  #: the same in one word


def spellings(frame: Frame, data: bytes) -> Mapping[str, bytes]:
    """Other ways to write an event, by name; with events around it that say nothing."""
    found = {
        "before an unknown event": data + event_bytes(UNKNOWN, []),
        "before a sign of life": data + event_bytes(EventType.HEARTBEAT_RSP, []),
    }
    if not isinstance(frame, BrokerResponse):  # nothing else is the first that a broker says
        found["behind an unknown event"] = event_bytes(UNKNOWN, [b"abcd"]) + data
    try:
        if isinstance(frame, Push):
            found |= {name: _with_options(frame, change) for name, change in OPTIONS.items()}
        elif isinstance(frame, Ack):
            found["longer items"] = BlazingCodec().encode(replace(frame, item_words=frame.item_words + 1))
    except WireError:
        pass  # what an earlier fault has left of it
    return found


def _with_options(frame: Push, change: Callable[[bytes], bytes]) -> bytes:
    messages = tuple([replace(one, options=change(one.options)) for one in frame.messages])
    return BlazingCodec().encode(replace(frame, messages=messages))


OPTIONS: Mapping[str, Callable[[bytes], bytes]] = {
    "behind a strange option": lambda options: STRANGE + options,
    "before a strange option": lambda options: options + STRANGE,
    "behind a packed option": lambda options: PACKED + options,
    "with delivery attempts": lambda options: write_options(read_options(options), PushOption.INFOS),
}
