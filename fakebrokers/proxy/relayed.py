"""A connection whose frames are read: what it says and hears are the frames of a protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from fakebrokers.core.connection import Connection
from fakebrokers.core.frames import Frame
from fakebrokers.core.relay import Relay
from fakebrokers.core.session import HangUp, Link
from fakebrokers.proxy.exact import ExactBytes, ExactCodec, ExactReader
from fakebrokers.proxy.frames import ClientBytes, ServerBytes
from fakebrokers.proxy.recording import Recorder
from fakebrokers.proxy.session import ProxySession


def nothing_waits(link: Link) -> bool:
    """Whether no frame of a connection is still on its way through the faults."""
    assert isinstance(link, Connection)
    return link.pipe.lanes["in"].idle and link.pipe.lanes["out"].idle


class FrameSession(ProxySession):
    """Passes frames on as soon as they are whole.

    Args:
        relay: Reads both directions.
        address: Gives host and port that clients get instead of the server's own; None leaves
            what the server says.
        recorder: Writes down what the server hears and says.
        options: Those of `ProxySession`.
    """

    def __init__(
        self,
        relay: Relay,
        *,
        address: Callable[[], tuple[str, int]] | None = None,
        recorder: Recorder | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._relay = relay
        self._address = address
        self._recorder = recorder
        self._kept = ExactBytes(lambda: nothing_waits(self.link))
        self._client = ExactReader(relay.from_client, ClientBytes, self._kept)
        self._server = ExactReader(relay.from_server, ServerBytes, self._kept)
        self.codec = ExactCodec(self._client, relay.from_server, self._kept)

    def opened(self, now: float) -> None:
        if self._recorder is not None:
            self._recorder.opened(self.link.name)
        super().opened(now)

    def handle(self, frame: Frame, now: float) -> None:
        prompt = self._relay.prompt(frame)
        if prompt is not None:
            self.link.say(prompt)
        self._relay.heard(frame)
        data = frame.data if isinstance(frame, ClientBytes) else self._kept.find(frame)
        if data is None:
            data = self._relay.from_client.encode(frame)
        if self._recorder is not None:
            self._recorder.heard(self.link.name, frame)
        if self._upstream is not None:
            self._upstream.write(data)

    def from_server(self, data: bytes) -> None:
        for frame, size in self._server.feed(data):
            self._say(frame, size)
        self._watch_client()

    def _say(self, frame: Frame, size: int) -> None:
        self._from_server += size
        if self._recorder is not None:
            self._recorder.said(self.link.name, frame, self.codec)
        if self._address is not None:
            frame = self._relay.readdressed(frame, *self._address())
        self.link.say(frame)

    def input_ended(self, now: float) -> None:
        for frame, _ in self._client.rest():
            self.handle(frame, now)
        self._end_recorded("client")
        super().input_ended(now)

    def server_ended(self, now: float) -> None:
        for frame, size in self._server.rest():
            self._say(frame, size)
        self._end_recorded("server")
        super().server_ended(now)

    def server_gone(self, how: HangUp) -> None:
        self._end_recorded("server")
        super().server_gone(how)

    def refusal(self, frame: Frame, code: int, now: float) -> Frame | None:
        return self._relay.refusal(frame, code)

    def closed(self, now: float) -> None:
        self._end_recorded("client")
        super().closed(now)

    def _end_recorded(self, by: Literal["client", "server"]) -> None:
        if self._recorder is not None:
            self._recorder.ended(self.link.name, by)
