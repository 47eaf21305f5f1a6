"""How what is on the wire is read, and what it means."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from conformance.decoders import Decoder
from conformance.run.facts import Facts
from conformance.run.traits.questions import Questions
from conformance.run.view import Conn
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.session import Codec

Args = Mapping[str, Any]


class Reading(ABC):
    """How what is on the wire is read, and what it means.

    Attributes:
        least_limit: Bytes; with a smaller limit of frames nobody can say anything.
        size_field: Bytes of a frame that a limit of its size does not count.
        silent_end: What follows a payload whose size is known, and says nothing: a client may act before it
            comes.
    """

    least_limit: ClassVar[int] = 256
    size_field: ClassVar[int] = 0
    silent_end: ClassVar[bytes] = b""

    @abstractmethod
    def codec(self, side: str) -> Codec:
        """A new codec of the fake for what the ``client`` or ``server`` is handed; faults write with it."""

    def codec_at(self, side: str, socket: str) -> Codec:
        """The same for one of the fake's sockets, where they speak otherwise; see `Conn.socket`."""
        return self.codec(side)

    def decoders(self, socket: str = "") -> tuple[Decoder, Decoder]:
        """Decoders of what client and server are handed, which may have to know of each other.

        Those of `conformance.decoders`, where there are any: an error of the fake's codec does not look right
        to them.
        """
        return self.codec_at("client", socket), self.codec_at("server", socket)

    def reads(self, broker: Any) -> bool:
        """Whether it can read what clients of this fake say: some have wires of several kinds."""
        return True

    def names(self, args: Args) -> tuple[str, str] | None:
        """What an op calls a target, and what the wire calls it, if it says so and the two may differ."""
        return None

    def is_odd(self, frame: Frame) -> bool:
        """Whether what was sent to the client is not by the letter of the protocol."""
        return isinstance(frame, Malformed)

    def is_garbage(self, frame: Malformed) -> bool:
        """Whether a client has to give the connection up, because it cannot skip this."""
        return True

    @abstractmethod
    def track(self, conn: Conn, facts: Facts, questions: Questions) -> None:
        """Go through the frames of one connection and note what they mean, on `conn` and in `facts`."""

    def know(self, conns: Mapping[str, Conn], ops: Sequence[Any], facts: Facts) -> None:
        """Note what no frame says by itself, and what several connections say together; after `track`."""
        return

    def content(self, body: bytes, form: str) -> bytes:
        """What the application gave for a body on the wire, in a format of its client (`Hello.formats`)."""
        return body

    def stored(self, broker: Any) -> dict[str, list[tuple[Any, bytes]]]:
        """What the broker has at the end, by target: position and body."""
        return {}
