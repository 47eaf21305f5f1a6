"""Frames together with the very bytes that they came in, so that what no fault touches passes unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fakebrokers.core.frames import Frame
from fakebrokers.core.session import Codec
from fakebrokers.proxy.frames import ClientBytes, ServerBytes
from fakebrokers.proxy.session import ProxyCodec

#: Bytes that are kept at most of one connection: more than its lanes hold before nothing more is read. Only a
#: frame that a fault parks while so much passes it is encoded anew when it leaves.
KEPT_LIMIT = 8 * 1024 * 1024


class ExactBytes:
    """The bytes of frames that are still on their way.

    Args:
        nothing_waits: Tells whether no frame waits anywhere, so that what was kept is needed no more.
    """

    def __init__(self, nothing_waits: Callable[[], bool]) -> None:
        self._nothing_waits = nothing_waits
        self._kept: dict[int, tuple[Frame, bytes]] = {}  # by identity, which holds while the frame is kept
        self._size = 0

    def keep(self, frame: Frame, data: bytes) -> None:
        """Keep the bytes of a frame until nothing waits any more."""
        if self._kept and self._nothing_waits():
            self._kept.clear()
            self._size = 0
        self._forget(id(frame))
        self._kept[id(frame)] = (frame, data)
        self._size += len(data)
        while self._size > KEPT_LIMIT and len(self._kept) > 1:
            self._forget(next(iter(self._kept)))

    def _forget(self, identity: int) -> None:
        kept = self._kept.pop(identity, None)
        self._size -= 0 if kept is None else len(kept[1])

    def find(self, frame: Frame) -> bytes | None:
        """The bytes of a frame; None for one that was made here, or changed."""
        kept = self._kept.get(id(frame))
        return None if kept is None else kept[1]


class ExactReader:
    """Reads one direction; what the codec gives up on comes out as plain bytes.

    Args:
        codec: Reads the frames. Its sizes have to count every byte.
        bytes_frame: The frame for bytes that are no frame: `ClientBytes` or `ServerBytes`.
        kept: Gets the bytes of each frame.
    """

    def __init__(self, codec: Codec, bytes_frame: type[ClientBytes | ServerBytes], kept: ExactBytes) -> None:
        self._codec = codec
        self._bytes_frame = bytes_frame
        self._kept = kept
        self._data = bytearray()
        self._passed = 0

    def feed(self, unit: bytes) -> Iterator[tuple[Frame, int]]:
        """Frames and their sizes, as `Codec.feed`."""
        self._data += unit  # not before it is iterated over: units come out one after the other
        for frame, size in self._codec.feed(unit):
            self._kept.keep(frame, self._take(size))
            yield frame, size
        unread = len(self._data) - self._codec.partial
        if unread > 0:
            yield self._plain(unread)

    def rest(self) -> Iterator[tuple[Frame, int]]:
        """What has come of a frame whose end will not come any more."""
        if self._data:
            yield self._plain(len(self._data))

    @property
    def partial(self) -> int:
        """Bytes of a frame that has not arrived whole."""
        return len(self._data)

    def _plain(self, size: int) -> tuple[Frame, int]:
        at = self._passed
        return self._bytes_frame(at, self._take(size)), size

    def _take(self, size: int) -> bytes:
        data = bytes(self._data[:size])
        del self._data[:size]
        self._passed += size
        return data


class ExactCodec(Codec):
    """The codec of a connection through the proxy: reads the client, writes what the server says.

    Args:
        reader: Of the client's frames.
        from_server: Writes frames that have no bytes of their own.
        kept: The bytes of those that have.
    """

    def __init__(self, reader: ExactReader, from_server: Codec, kept: ExactBytes) -> None:
        self._reader = reader
        self._from_server = from_server
        self._kept = kept

    def feed(self, unit: bytes) -> Iterator[tuple[Frame, int]]:
        return self._reader.feed(unit)

    def encode(self, frame: Frame) -> bytes:
        if isinstance(frame, ClientBytes | ServerBytes):
            return frame.data
        kept = self._kept.find(frame)
        if kept is not None:
            return kept
        data: bytes = self._from_server.encode(frame)
        return data

    def fresh(self) -> Codec:
        """For bytes that a fault has changed: they reach the server as they are."""
        return ProxyCodec()

    def mend(self, unit: bytes) -> bytes:
        mended: bytes = self._from_server.mend(unit)
        return mended

    @property
    def partial(self) -> int:
        return self._reader.partial
