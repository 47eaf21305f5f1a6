"""A fake that says what a server has said in a recording; see `recording` and `script`.

    with Replay("session.jsonl") as server:
        ...  # point the client at server.host, server.port

Faults act on it, and the journal tells what was said, as in any fake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from fakebrokers.core.engine import Clock
from fakebrokers.core.frames import Frame, KeyType, kind_of
from fakebrokers.core.listeners import Endpoint
from fakebrokers.core.relay import Relay, new_relay
from fakebrokers.core.session import Codec, Link, Session
from fakebrokers.errors import UsageError
from fakebrokers.protocol import find_protocol
from fakebrokers.proxy.exact import ExactBytes, ExactCodec, ExactReader
from fakebrokers.proxy.frames import ClientBytes, ServerBytes
from fakebrokers.proxy.recording import Line, innermost, read_recording
from fakebrokers.proxy.relayed import nothing_waits
from fakebrokers.proxy.script import Due, Script
from fakebrokers.proxy.server import relayed
from fakebrokers.proxy.session import NoBroker
from fakebrokers.server import FakeServer


class ReplaySession(Session):
    """Plays one recorded connection.

    Args:
        lines: Of that connection.
        relay: Reads what the client says, and what was recorded.
        address: Host and port that the client gets instead of the recorded server's.
        unknown: Gets each frame that was not recorded.
    """

    def __init__(
        self,
        lines: Sequence[Line],
        relay: Relay,
        address: tuple[str, int],
        unknown: Callable[[Link, Frame], None],
    ) -> None:
        self._script = Script(lines)
        self._relay = relay
        self._address = address
        self._kept = ExactBytes(lambda: nothing_waits(self.link))
        self._server = ExactReader(relay.from_server, ServerBytes, self._kept)
        reader = ExactReader(relay.from_client, ClientBytes, self._kept)
        self.codec = ExactCodec(reader, relay.from_server, self._kept)
        self._unknown = unknown
        self._not_recorded = 0

    def opened(self, now: float) -> None:
        self.state = "open"
        self.link.ready()
        self._say(self._script.begin())

    def handle(self, frame: Frame, now: float) -> None:
        prompt = self._relay.prompt(frame)
        if prompt is not None:
            self.link.say(prompt)
        self._relay.heard(frame)
        due = self._script.hear(frame)
        if due is None:
            self._not_recorded += 1
            self._unknown(self.link, frame)
        else:
            self._say(due)

    def _say(self, due: Sequence[Due]) -> None:
        for each in due:
            if each.line.what == "end":
                self.link.hang_up()
            elif each.line.data is not None:  # without its data it had credentials
                for frame, _ in self._server.feed(each.line.data):
                    frame = with_keys(frame, each)
                    self.link.say(self._relay.readdressed(frame, *self._address))

    def _closed(self, now: float) -> None:
        self.state = "closed"

    def describe(self) -> dict[str, Any]:
        return {"state": self.state, "not_recorded": self._not_recorded}


def with_keys(frame: Frame, due: Due) -> Frame:
    """A recorded frame with the items that are due, and with the client's keys where its fields hold them."""
    inner = innermost(frame)
    if inner is not frame and frame.spec.inside is not None:
        changed = with_keys(inner, due)
        return frame if changed is inner else frame.spec.inside.wrap(frame, changed)
    spec = frame.spec
    if due.indices is not None and spec.items is not None:
        frame = spec.items.select(frame, due.indices)
    fields = frame.__struct_fields__
    if due.keys and spec.key in fields:
        value = _like(getattr(frame, spec.key), due.keys, frame)
        if value != getattr(frame, spec.key):
            frame = replace(frame, **{spec.key: value})
    elif due.keys and spec.items is not None and spec.keys is KeyType.BYTES16:
        frame = _exchanged(frame, dict(zip(spec.items.keys(frame), due.keys, strict=True)))
    if due.scope is not None and spec.scope in fields and getattr(frame, spec.scope) != due.scope:
        frame = replace(frame, **{spec.scope: due.scope})
    return frame


def _like(value: Any, keys: tuple[Any, ...], frame: Frame) -> Any:
    """Keys in the shape of a field: one, several in a tuple, or packed. Another shape stays as it is."""
    spec = frame.spec
    if spec.items is None:
        return keys[0]
    if isinstance(value, bytes) and spec.keys.width:
        return b"".join([each.to_bytes(8, "big") if isinstance(each, int) else each for each in keys])
    plain = isinstance(value, tuple) and len(value) == len(keys) and type(value[0]) is type(keys[0])
    return keys if plain else value


def _exchanged(value: Any, keys: Mapping[bytes, bytes]) -> Any:
    """A value with other keys wherever they stand in it. Only for keys that nothing else is equal to."""
    if isinstance(value, bytes):
        return keys.get(value, value)
    if isinstance(value, Struct):
        names = value.__struct_fields__
        return replace(value, **{name: _exchanged(getattr(value, name), keys) for name in names})
    if isinstance(value, tuple):
        found = [_exchanged(each, keys) for each in value]
        return value._make(found) if hasattr(value, "_make") else tuple(found)
    return value


class Replay(FakeServer):
    """Plays a recording: the n-th client gets the n-th recorded connection, and those after the last one
    get that one again.

    Args:
        recording: The file.
        protocol: That it has to be of, if that is known.
        options: Those of `FakeServer`.

    Raises:
        UsageError: It cannot be read, or is of another protocol.
    """

    def __init__(self, recording: str | Path, *, protocol: str = "", **options: Any) -> None:
        path = Path(recording)
        head, lines = read_recording(path)
        if protocol not in ("", head.protocol):
            raise UsageError(f"{path}: expected a recording of {protocol}, got one of {head.protocol}")
        described = find_protocol(head.protocol)
        self.protocol = relayed(described, described.wire(head.wire))
        names = list(dict.fromkeys(line.connection for line in lines))
        self._conversations = [[line for line in lines if line.connection == name] for name in names]
        if not self._conversations:
            raise UsageError(f"{path}: expected a recording of at least one connection, got none")
        self._scheme = head.scheme
        super().__init__(**options)

    @property
    def scheme(self) -> str:
        return self._scheme

    def _make_broker(self, clock: Clock) -> NoBroker:
        return NoBroker()

    def _endpoints(self) -> list[Endpoint]:
        return [Endpoint(self._wires[0], self._new_session, self._wanted_port)]

    def _new_session(self, _: Any) -> tuple[Session, Codec]:
        number = min(self.engine.accepted, len(self._conversations) - 1)
        address = self.host, self.listeners[0].port
        relay = new_relay(self._wires[0])
        session = ReplaySession(self._conversations[number], relay, address, self._note_unknown)
        return session, session.codec

    def _note_unknown(self, link: Link, frame: Frame) -> None:
        self.journal.state(self.engine.now, link.name, "not recorded", kind_of(frame))
