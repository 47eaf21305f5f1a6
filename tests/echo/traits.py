"""What the sweep has to know of the echo."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import unquote_to_bytes

from conformance.run.facts import Facts, Settled, Written
from conformance.run.traits import Args, Connecting, FaultMaterial, Questions, Reading, Settlement, Traits
from conformance.run.view import Conn
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.session import Codec
from tests.echo.protocol import EchoCodec, Ping, Put, Stored


class EchoReading(Reading):
    """How its frames are read, and what they mean."""

    def codec(self, side: str) -> Codec:
        return EchoCodec()

    def is_garbage(self, frame: Malformed) -> bool:
        return False  # a line that cannot be read ends where the next one begins

    def track(self, conn: Conn, facts: Facts, questions: Questions) -> None:
        conn.ready = conn.accepted
        for seen in conn.frames:
            if isinstance(seen.frame, Put):
                for name in seen.frame.names:
                    facts.written.append(Written(conn, seen.at, ("", "", name), unquote_to_bytes(name)))
            elif isinstance(seen.frame, Stored):
                for name, code in zip(seen.frame.names, seen.frame.codes, strict=False):
                    stored = str(code) == "0"
                    facts.settled.append(
                        Settled(conn, seen.at, ("", "", name), stored, None if stored else str(code))
                    )

    def stored(self, broker: Any) -> dict[str, list[tuple[Any, bytes]]]:
        return {"": [(at, unquote_to_bytes(name)) for at, name in enumerate(broker.broker.stored)]}


class EchoQuestions(Questions):
    """Its questions, their answers, and the codes of these."""

    answers: ClassVar[Mapping[type[Frame], type[Frame]]] = {Put: Stored}

    def accepts(self, frame: Any) -> bool:
        return not isinstance(frame, Stored) or all(str(code) == "0" for code in frame.codes)

    def opposite(self, frame: Any, code: Any) -> Frame | None:
        if not isinstance(frame, Stored):
            return None
        return Stored(frame.names, tuple(5 if self.accepts(frame) else 0 for _ in frame.names))


class EchoSettlement(Settlement):
    """Where the outcome of a message is reported."""

    def place(self, args: Args, key: Any) -> tuple[Hashable, ...]:
        return "", "", key


class EchoFaultMaterial(FaultMaterial):
    """What faults are made of here."""

    fixed = ("target",)

    def said_by_server(self) -> Sequence[type[Frame]]:
        return Stored, Ping


TRAITS = Traits(
    protocol="echo",
    reading=EchoReading(),
    questions=EchoQuestions(),
    settlement=EchoSettlement(),
    connecting=Connecting(announces_end=False),
    faults=EchoFaultMaterial(),
)
