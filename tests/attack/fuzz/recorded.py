"""What real clients were recorded to say on each wire, in pieces that a fuzzer changes.

Where there is no recording, the pieces are what a client would say: PZQ's recordings hold messages, which are
framed here as ZMTP does it, and requests to the HTTP APIs are written from their routes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple

from fakebrokers.core.dialect import Login
from fakebrokers.narconi.websocket import encode_frame
from fakebrokers.protocol import find_protocol
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from tests.blazingmq.golden import events, scenarios
from tests.control.hostile import Asked, body
from tests.control.test_hostile import Requests, management, toxiproxy
from tests.moleculer import golden as moleculer
from tests.narconi.recording import Record, recordings
from tests.pzq.test_vectors import RECORDS
from tests.pzq.zmtp import handshake, message
from tests.rabbitmq_stream.bench import HANDSHAKE
from tests.rabbitmq_stream.golden import cases

#: Longer ones would take the time of many others.
LONGEST = 4000
GUEST = "Authorization: Basic Z3Vlc3Q6Z3Vlc3Q="


class Talk(NamedTuple):
    """One conversation.

    Attributes:
        pieces: What the client says, one after the other.
        opening: What has to be said first, else nothing else counts; each behind an answer to the last.
        port: Which of the server's ports it is for, from 0.
    """

    pieces: Sequence[bytes]
    opening: Sequence[bytes] = ()
    port: int = 0


def _rabbitmq_stream() -> Iterator[Talk]:
    encode = StreamCodec("client").encode
    *single, tune, enter = [encode(frame) for _, frame in HANDSHAKE]
    opening = [*single, tune + enter]  # nobody answers a Tune
    for case in cases("4.3.6"):
        yield Talk([step.data for step in case.steps if step.direction == "c2s"], opening)


def _blazingmq() -> Iterator[Talk]:
    """A client that ends its session is not heard any more, so none does; brokers' events come in too."""
    from_brokers = [event.data for event in events() if event.direction == "S2C"]
    for scenario in scenarios():
        of_sdk = [event for event in events() if (event.scenario, event.direction) == (scenario, "C2S")]
        opening, *rest = [event.data for event in of_sdk if not event.description.endswith("disconnect")]
        yield Talk([*rest, *from_brokers[:3]], [opening])


#: By the recordings' names of sockets: type of the client's socket, and which of the fake's three it is for.
_PZQ = {"producer": ("DEALER", 0), "consumer": ("DEALER", 1), "monitor": ("REQ", 2)}


def _pzq() -> Iterator[Talk]:
    for version in ("1.0", "2.0", "3.0"):
        for name, (kind, port) in _PZQ.items():
            sent = [
                [bytes.fromhex(part) for part in record["parts"]]
                for record in RECORDS
                if record.get("socket") == name and record["dir"] == "c2s" and record["parts"]
            ]
            envelope = [b""] if kind == "REQ" else []
            pieces = [message(version, *envelope, *parts) for parts in sent]
            yield Talk(pieces, [handshake(version, kind)], port)


def _narconi_http() -> Iterator[Talk]:
    for records in recordings().values():
        pieces = [
            _http(record["method"], record["target"], record["headers"], _bytes(record, "body"))
            for record in records
            if (record["ch"], record["dir"]) == ("http", "c2s")
        ]
        yield Talk(pieces)


def _narconi_websocket() -> Iterator[Talk]:
    for records in recordings().values():
        talks: dict[str, list[Record]] = {}
        for record in records:
            if record["ch"].startswith("ws") and record["dir"] == "c2s":
                talks.setdefault(record["conn"], []).append(record)
        for opening, *rest in talks.values():
            if opening["ch"] == "ws-handshake":
                pieces = [
                    encode_frame(each["opcode"], _bytes(each, "payload"), fin=bool(each["fin"]), masked=True)
                    for each in rest
                    if "opcode" in each
                ]
                # the queue has to be there first
                queue = _http("PUT", opening["target"].rpartition("/messages")[0], [["Host", "x"]])
                upgrade = _http("GET", opening["target"], opening["headers"])
                yield Talk(pieces or [upgrade], [queue, upgrade])


def _bytes(record: Record, name: str) -> bytes:
    """A body as it was; of a long one the recording has the beginning, of one in chunks the sizes."""
    begin, size = (
        bytes.fromhex(record[f"{name}_hex"] or ""),
        record["len" if name == "payload" else f"{name}_len"],
    )
    if isinstance(size, list):
        return b"".join([b"%x\r\n%b\r\n" % (each, b"z" * each) for each in size]) + b"0\r\n\r\n"
    return begin.ljust(size, b"z")


def _http(method: str, target: str, headers: Sequence[Sequence[str]], data: bytes = b"") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + data


def _bus(transporter: str) -> Callable[[], Iterator[Talk]]:
    def talks() -> Iterator[Talk]:
        if transporter == "tcp":
            yield Talk([row.data for row in moleculer.rows("frame")])
            return
        for talk in moleculer.talks(transporter):
            pieces = [data for way, data in talk.steps if way == "C>S" and len(data) < LONGEST]
            # without CONNECT nothing else counts in MQTT
            yield Talk(pieces, pieces[:1] if transporter == "mqtt" else [])

    return talks


def _alone(name: str) -> Callable[[], Iterator[Talk]]:
    """What nodes say to a bus, and what `fakebrokers compare` says."""

    def talks() -> Iterator[Talk]:
        yield from _bus(name)()
        dialect = find_protocol(name).wires[0].load_dialect()
        for seed in range(40):
            said = [each.data for each in dialect.sequence(Random(seed), Login()) if each.data]
            yield Talk(said, said[:1] if name == "mqtt" else [])

    return talks


def _requests(make: Callable[[Random], Asked], *headers: str) -> Iterator[Talk]:
    random = Random(1)
    for _ in range(40):
        asked = [make(random) for _ in range(25)]
        yield Talk([_raw(each, headers) for each in asked])


def _raw(asked: Asked, headers: Sequence[str]) -> bytes:
    path = asked.path.encode("ascii", "backslashreplace").decode().replace(" ", "%20")
    lines = [f"{asked.method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(asked.body)}"]
    return "\r\n".join([*lines, *headers, "\r\n"]).encode() + asked.body


def _control() -> Iterator[Talk]:
    from fakebrokers.control.brokers import Brokers

    brokers = Brokers()
    try:
        requests = Requests(find_protocol("rabbitmq-stream"), brokers)
        yield from _requests(lambda random: _harmless(requests(random), random))
        requests.close()
    finally:
        brokers.close()


def _harmless(asked: Asked, random: Random) -> Asked:
    """The request, or another one where it would wait or let time pass: that is what it is for."""
    patient = asked.path.startswith(("/brokers/b/shift_clock", "/brokers/b/wait", "/brokers/b/expect"))
    return Asked("POST", "/brokers/b/create_stream", body({"name": "s"})) if patient else asked


#: By name of the wire.
TALKS: Mapping[str, Callable[[], Iterator[Talk]]] = {
    "rabbitmq-stream": _rabbitmq_stream,
    "blazingmq": _blazingmq,
    "pzq": _pzq,
    "narconi-http": _narconi_http,
    "narconi-websocket": _narconi_websocket,
    **{name: _bus(name) for name in ("nats", "redis", "mqtt", "tcp")},
    **{f"{name}-alone": _alone(name) for name in ("nats", "redis", "mqtt")},
    "control": _control,
    "management": lambda: _requests(management, GUEST),
    "proxy": lambda: _requests(toxiproxy),
}


def talks_of(wire: str) -> list[Talk]:
    """The conversations on a wire, without pieces that are too long."""
    found = []
    for talk in TALKS[wire]():
        pieces = [piece for piece in talk.pieces if 0 < len(piece) < LONGEST]
        if pieces:
            found.append(talk._replace(pieces=pieces))
    return found


def mutated(data: bytes, random: Random) -> bytes:
    """The bytes with a few changes: other bytes, a piece doubled, left out or moved, an end cut off."""
    found = bytearray(data)
    for _ in range(random.randint(1, 3)):
        if not found:
            break
        at, size = random.randrange(len(found)), random.randint(1, 8)
        match random.randrange(6):
            case 0:
                found[at] = random.randrange(256)
            case 1:
                found[at:at] = found[at : at + size]
            case 2:
                del found[at : at + size]
            case 3:
                del found[at:]
            case 4:
                piece = found[at : at + size]
                del found[at : at + size]
                place = random.randrange(len(found) + 1)
                found[place:place] = piece
            case _:
                found[at] ^= 1 << random.randrange(8)
    return bytes(found)
