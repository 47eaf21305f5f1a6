"""The two "frames" of a wire whose bytes are not parsed: what one read of the socket returned."""

from __future__ import annotations

from fakebrokers.core.frames import Frame, FrameSpec, Role


class ClientBytes(Frame, frozen=True, gc=False):
    """From the client to the server.

    Attributes:
        start: Offset of the first byte in this direction of the connection.
        data: What one read returned. Where reads are cut is chance: faults that have to repeat exactly match
            by `Match.byte`, not by `nth`.
    """

    spec = FrameSpec(Role.DATA, bulk=("data",), secret=("data",))  # nobody knows what they mean
    start: int
    data: bytes


class ServerBytes(Frame, frozen=True, gc=False):
    """From the server to the client; fields as in `ClientBytes`."""

    spec = FrameSpec(Role.DATA, bulk=("data",), secret=("data",))
    start: int
    data: bytes


FRAMES = (ClientBytes, ServerBytes)
