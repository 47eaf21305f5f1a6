"""The two "frames" of a wire that nobody looks into: what one read gave."""

from __future__ import annotations

from fakebrokers.core.frames import Frame, FrameSpec, Role


class ClientBytes(Frame, frozen=True, gc=False):
    """From the client to the server.

    Attributes:
        start: Offset of the first byte in this direction of the connection.
        data: As one read gave them: where they are cut is chance, which is why faults that shall
            repeat exactly go by `Match.byte` and not by `nth`.
    """

    spec = FrameSpec(Role.DATA, bulk=("data",))
    start: int
    data: bytes


class ServerBytes(Frame, frozen=True, gc=False):
    """From the server to the client; fields as in `ClientBytes`."""

    spec = FrameSpec(Role.DATA, bulk=("data",))
    start: int
    data: bytes


FRAMES = (ClientBytes, ServerBytes)
