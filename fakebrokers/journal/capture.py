"""From the rows of a run to packets for Wireshark.

A journal has frames, not packets: each frame becomes a TCP segment (several where it is too long for one) at
the time at which it was written down, with a comment that says what it is. Connections have the usual port of
the protocol, so that Wireshark knows which dissector to take.

The bytes of a frame are made from its fields, where the journal has all of them (``journal_frames``, on the
command line ``--journal-frames``); credentials are blotted out there. Of all others the size is known: they
are as many zero bytes. What a fault took is a segment without bytes and a comment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address
from typing import BinaryIO

import msgspec

from fakebrokers.core.frames import Frame, kind_of
from fakebrokers.core.relay import Relay, new_relay
from fakebrokers.core.wire import Wire
from fakebrokers.errors import FakeBrokerError
from fakebrokers.journal.pcapng import ACK, FIN, MAX_PAYLOAD, PSH, RST, SYN, Address, Writer, segment
from fakebrokers.journal.reader import RunLog
from fakebrokers.journal.record import State
from fakebrokers.journal.rows import FrameRow
from fakebrokers.journal.stored import began_ns, record_of
from fakebrokers.protocol import find_protocol
from fakebrokers.version import __version__

_LOOPBACK = "127.0.0.1"
#: Ports of clients whose address nobody knows count from here.
_FIRST_PORT = 49152
_CLOSING = {State.CLOSED: FIN | ACK, State.FIN: FIN | ACK, State.RST: RST | ACK}


def write_capture(logs: Iterable[RunLog], file: BinaryIO) -> int:
    """Write runs as pcapng; how many packets that are. Each run is an interface."""
    writer = Writer(file, f"fakebrokers {__version__}")
    return sum(_Capture(writer, log).write() for log in logs)


class _Conversation:
    """One connection, as TCP has it."""

    def __init__(self, client: Address, server: Address) -> None:
        self.ends = {"in": client, "out": server}
        self.seqs = {"in": 0, "out": 0}
        self.is_open = False

    def say(self, direction: str, flags: int, payload: bytes = b"") -> bytes:
        """The next packet in that direction."""
        other = "out" if direction == "in" else "in"
        seq, ack = self.seqs[direction], self.seqs[other] if flags & ACK else 0
        self.seqs[direction] += len(payload) + bool(flags & (SYN | FIN))
        return segment(self.ends[direction], self.ends[other], seq, ack, flags, payload)


class _Capture:
    """One run."""

    def __init__(self, writer: Writer, log: RunLog) -> None:
        self._writer = writer
        self._rows = log.frames
        self._began_ns = began_ns(log)
        self._wall_ns = log.run.started_ms * 1_000_000 - self._began_ns
        self._interface = writer.interface(log.run.run)
        self._wire = _wire_of(log.run.protocol, self._rows)
        self._conversations: dict[str, _Conversation] = {}
        self._relays: dict[str, Relay] = {}
        self._inside = _comments_of_the_inside(self._rows)
        self._packets = 0

    def write(self) -> int:
        """All of it; how many packets that are."""
        for row in self._rows:
            if row.connection and not row.envelope and not row.part:
                self._take(row)
        return self._packets

    def _take(self, row: FrameRow) -> None:
        told = str(record_of(row, self._began_ns)).strip()
        told = "\n".join([told, *self._inside.get(row.seq, ())])
        if row.tap == "state":
            self._state(row, told)
        elif row.tap in ("in", "received", "out", "sent"):
            self._frame(row, told)
        else:  # what was heard or said after a fault did not go over the wire like that
            self._put(row, row.direction, ACK, b"", told)

    def _state(self, row: FrameRow, told: str) -> None:
        talk = self._talk(row)
        if row.kind in _CLOSING:
            if talk.is_open:
                self._put(row, "out", _CLOSING[State(row.kind)], b"", told)
                talk.is_open = False
        elif row.kind != State.ACCEPTED:
            self._put(row, "out", ACK, b"", told)

    def _frame(self, row: FrameRow, told: str) -> None:
        data = self._bytes_of(row)
        if data is None or len(data) != row.size:
            told += f"\nthe journal has no bytes of this frame: {row.size} zeros"
            data = bytes(row.size)
        self._put(row, row.direction, PSH | ACK, data[:MAX_PAYLOAD], told)
        for start in range(MAX_PAYLOAD, len(data), MAX_PAYLOAD):
            self._put(row, row.direction, PSH | ACK, data[start : start + MAX_PAYLOAD], "")

    def _talk(self, row: FrameRow) -> _Conversation:
        """The conversation on a row's connection, begun with TCP's handshake."""
        talk = self._conversations.get(row.connection)
        if talk is None:
            number = len(self._conversations)
            note = row.note if row.kind == State.ACCEPTED else ""
            client = _address(note) or Address(_LOOPBACK, _FIRST_PORT + number)
            talk = self._conversations[row.connection] = _Conversation(client, Address(_LOOPBACK, self._port))
            talk.is_open = True
            for direction, flags in (("in", SYN), ("out", SYN | ACK), ("in", ACK)):
                self._put(row, direction, flags, b"", "")
        return talk

    def _put(self, row: FrameRow, direction: str, flags: int, payload: bytes, comment: str) -> None:
        data = self._talk(row).say(direction, flags, payload)
        at_ns = row.t_ns + self._wall_ns
        self._writer.packet(self._interface, at_ns, data, comment=comment, inbound=direction == "in")
        self._packets += 1

    @property
    def _port(self) -> int:
        return (self._wire.port if self._wire is not None else 0) or _FIRST_PORT - 1

    def _bytes_of(self, row: FrameRow) -> bytes | None:
        """A frame's bytes, made from its fields; None where the journal does not have them all."""
        if row.frame is None or self._wire is None:
            return None
        try:
            relay = self._relays.get(row.connection)
            if relay is None:
                relay = self._relays[row.connection] = new_relay(self._wire)
            frame = msgspec.json.decode(row.frame, type=_kinds(self._wire)[row.kind])
            if row.direction == "in":
                relay.heard(frame)
            codec = relay.from_client if row.direction == "in" else relay.from_server
            data = codec.encode(frame)
        except (FakeBrokerError, msgspec.MsgspecError, LookupError, TypeError, ValueError):
            return None
        return data if isinstance(data, bytes) else None


@lru_cache(maxsize=16)
def _kinds(wire: Wire) -> dict[str, type[Frame]]:
    return {kind_of(each): each for each in wire.frames}


def _wire_of(protocol: str, rows: Sequence[FrameRow]) -> Wire | None:
    """The wire of a protocol that has most of the frames; None where the protocol is not known here."""
    try:
        wires = find_protocol(protocol).wires
    except FakeBrokerError:
        return None
    kinds = {row.kind for row in rows}
    return max(wires, key=lambda wire: len(kinds & _kinds(wire).keys()))


def _comments_of_the_inside(rows: Sequence[FrameRow]) -> dict[int, list[str]]:
    """What is inside the frame of a row, and its further parts: by the row's number, a line each."""
    found: dict[int, list[str]] = {}
    outer = 0
    for row in rows:
        if not row.envelope and not row.part:
            outer = row.seq
        else:
            found.setdefault(outer, []).append(f"with {row.kind} {' '.join(row.keys)}".rstrip())
    return found


def _address(note: str) -> Address | None:
    """``127.0.0.1:40000``, if that is what a note says."""
    host, _, port = note.rpartition(":")
    try:
        return Address(str(IPv4Address(host)), int(port))
    except (AddressValueError, ValueError):
        return None
