"""Every recorded exchange with the real servers, played against the fake.

What may differ, by name:

* *clock*: ``Date`` headers and time stamps of messages; their form is checked.
* *memory*: ``{"message": 5}`` stores five bytes of node's memory; the fake stores zeros.
* *recorder*: what the recorder did beside the record: it made the queue before each scenario, made it
  again after one was deleted, and closed connections that the record does not mention any more.

Profile ``seed`` answers as the document says; `_as_document` turns a recorded answer into that.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from fakebrokers.core.session import HangUp
from fakebrokers.narconi.config import Config
from fakebrokers.narconi.server import Narconi
from tests.narconi.recording import (
    Answer,
    Core,
    Live,
    Record,
    Reply,
    Server,
    Socket,
    frame_payload,
    recordings,
    request_body,
)

DATE = re.compile(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT")
STAMP = re.compile(r'("timestamp":)\d{13}\b')

#: *recorder*: the first record before which it made the queue again.
QUEUE_MADE_AGAIN = {312}
#: *recorder*: the last record of a connection that it then closed.
DROPPED_AFTER = {643: "ack-both"}
#: *memory*: what a record says, and what the fake stores.
MEMORY = {905: bytes(5)}

#: Scenarios in which document and server agree but for the form of the answers.
IN_DOCUMENT = ("queues", "pubsub", "ws_publish", "ws_consume", "graceful", "pub_xnull")
#: Records of those that mean something else there: an empty message is metadata, a large ttl an error.
NOT_IN_DOCUMENT = {203, 204, 207, 208, 233, 234, 237, 238}
#: Requests whose answer is another one in profile ``seed``.
DOCUMENT_SAYS = {
    31: "HTTP/1.1 200 OK",  # OPTIONS: discovery
    91: "HTTP/1.1 204 No Content",  # ttl=1, 2.2 s later: expired
    97: "HTTP/1.1 204 No Content",  # ttl=0: expired at once
}


def _fixed_headers(headers: list[list[str]]) -> list[list[str]]:
    out = []
    for name, value in headers:
        if name == "Date":
            assert DATE.fullmatch(value), value
            value = "clock"
        elif name == "x-msg-timestamp":
            assert re.fullmatch(r"\d{13}", value), value
            value = "clock"
        elif name == "Host":
            continue
        out.append([name, value])
    return out


def _fixed_text(text: str) -> str:
    return STAMP.sub(r"\g<1>0", text)


class Player:
    """Plays one scenario record by record."""

    def __init__(self, server: Server, version: str, scenario: str) -> None:
        self.server = server
        self.scenario = scenario
        self.version = version
        self.http: Socket | None = None
        self.request: Record = {}
        self.answer: Answer | None = None
        self.sockets: dict[str, Socket] = {}
        self.replies: dict[str, list[Reply]] = {}
        self.checked = 0

    @property
    def document(self) -> bool:
        return self.server.profile.name == "seed"

    def play(self) -> None:
        if self.scenario == "backend_down":
            self.server.broker.backend_up = False
        elif self.scenario != "queues":
            self.ensure()
        for record in recordings()[self.version, self.scenario]:
            self.server.now = record["t"]
            if self.document and record["seq"] in NOT_IN_DOCUMENT:
                continue
            if record["seq"] in QUEUE_MADE_AGAIN:
                self.ensure()
            act = getattr(self, f"{record['ch'].replace('-', '_')}_{record['dir']}")
            act(record)
            if record["seq"] in DROPPED_AFTER:
                self.sockets.pop(DROPPED_AFTER[record["seq"]]).drop()
        for name, socket in self.sockets.items():
            assert not self.left(name), name
            assert not socket.data
        assert not self.server.errors

    def ensure(self) -> None:
        self.server.call(self.server.broker.ensure, f"gold_{self.scenario}")

    # HTTP

    def http_c2s(self, record: Record) -> None:
        if self.http is None or self.http.ended:
            self.http = self.server.connect()
        self.request = record
        headers = record["headers"]
        self.answer = self.http.request(record["method"], record["target"], headers, request_body(record))

    def http_s2c(self, record: Record) -> None:
        answer, self.answer = self.answer, None
        assert answer is not None
        assert self.http is not None
        self.checked += 1
        if self.document and self.request["seq"] in DOCUMENT_SAYS:
            assert answer.status_line == DOCUMENT_SAYS[self.request["seq"]]
            return
        body = MEMORY.get(record["seq"], answer.body)
        if record["seq"] in MEMORY:
            assert answer.body == MEMORY[record["seq"]]
        expected = self._as_document(record) if self.document else record
        assert answer.status_line == expected["status_line"]
        assert _fixed_headers(answer.headers) == _fixed_headers(expected["headers"])
        assert len(body) == expected["body_len"]
        if record["seq"] not in MEMORY:
            assert body[:64].hex() == expected["body_hex"][:128]
        closes = ["Connection", "close"] in record["headers"]
        assert (self.http.ended is HangUp.FIN) == closes

    def _as_document(self, record: Record) -> Record:
        """A recorded answer in the document's form: lengths, no chunks; errors are ``{"message"}``."""
        headers = [pair for pair in record["headers"] if pair[0] != "Transfer-Encoding"]
        body = bytes.fromhex(record["body_hex"])
        if ["Content-Type", "application/json"] in headers and record["status_line"][9] in "45":
            if body:
                body = json.dumps({"message": json.loads(body)["message"]}, separators=(",", ":")).encode()
            else:  # HEAD
                method = self.request["method"]
                body = json.dumps({"message": f"{method} is not allowed"}, separators=(",", ":")).encode()
            headers = [[n, str(len(body)) if n == "Content-Length" else v] for n, v in headers]
            body = body if self.request["method"] != "HEAD" else b""
        elif len(headers) < len(record["headers"]):
            headers.append(["Content-Length", str(record["body_len"])])
        return {**record, "headers": headers, "body_hex": body.hex(), "body_len": len(body)}

    # WebSocket

    def ws_handshake_c2s(self, record: Record) -> None:
        socket = self.server.connect()
        self.sockets[record["conn"]] = socket
        self.replies[record["conn"]] = []
        self.answer = socket.request("GET", record["target"], record["headers"])

    def ws_handshake_s2c(self, record: Record) -> None:
        answer, self.answer = self.answer, None
        assert answer is not None
        self.checked += 1
        assert answer.status_line == record["status_line"]
        assert _fixed_headers(answer.headers) == _fixed_headers(record["headers"])
        assert answer.body == b""
        if record.get("connection_closed_by_server_within_1s"):
            assert self.sockets[record["conn"]].ended is HangUp.FIN

    def left(self, name: str) -> list[Reply]:
        """The frames of a connection that were not compared yet."""
        self.replies[name].extend(self.sockets[name].frames())
        return self.replies[name]

    def ws_c2s(self, record: Record) -> None:
        socket = self.sockets[record["conn"]]
        if "opcode" not in record:
            assert "drops the TCP connection" in record["desc"]
            socket.drop()
            return
        assert socket.ended is None
        socket.send_frame(record["opcode"], self._client_payload(record), bool(record["fin"]))

    def _client_payload(self, record: Record) -> bytes:
        return frame_payload(record)

    def ws_s2c(self, record: Record) -> None:
        self.checked += 1
        left = self.left(record["conn"])
        assert left, "nothing came"
        reply = left.pop(0)
        assert (reply.opcode, reply.fin) == (record["opcode"], record["fin"])
        if record["text"] is not None:
            assert _fixed_text(reply.payload.decode()) == _fixed_text(record["text"])
        else:
            assert len(reply.payload) == record["len"]
            assert reply.payload[:64].hex() == record["payload_hex"][:128]
        if record["opcode"] == 8:
            assert int.from_bytes(reply.payload, "big") == record["close_code"]
            assert self.sockets[record["conn"]].ended is HangUp.FIN

    def ws_none(self, record: Record) -> None:
        self.checked += 1
        assert not self.left(record["conn"])
        self.sockets[record["conn"]].look()
        assert self.sockets[record["conn"]].ended is None

    def ws_eof(self, record: Record) -> None:
        self.checked += 1
        assert not self.left(record["conn"])
        assert self.sockets[record["conn"]].ended is HangUp.FIN

    def note_note(self, record: Record) -> None:
        if "exited with code" in record["desc"]:
            assert self.server.broker.crashes == 1
        elif "still running" in record["desc"]:
            assert self.server.broker.crashes == 0
        elif "closes every AMQP connection" in record["desc"]:
            self.server.call(self.server.broker.lose_backend, self.server.now)


class DocumentPlayer(Player):
    """Profile ``seed``: ack ids are never used twice, so the recorded ones are translated."""

    def __init__(self, server: Server, version: str, scenario: str) -> None:
        super().__init__(server, version, scenario)
        self.ids: dict[tuple[str, str], str] = {}

    def ws_s2c(self, record: Record) -> None:
        text = record["text"] or ""
        if '"ackId"' in text:
            reply = self.left(record["conn"])[0]
            ours = json.loads(reply.payload)["ackId"]
            theirs = json.loads(text)["ackId"]
            assert ours not in self.ids.values()
            self.ids[record["conn"], theirs] = ours
            text = text.replace(f'"ackId":"{theirs}"', f'"ackId":"{ours}"')
        elif text.startswith('{"error"'):
            error = json.loads(text)
            text = json.dumps({"code": error["code"], "error": error["error"]}, separators=(",", ":"))
        if text:
            record = {**record, "text": text}
        super().ws_s2c(record)

    def _client_payload(self, record: Record) -> bytes:
        payload = frame_payload(record)
        if record["text"] and '"ack' in record["text"] and record["opcode"] == 1:
            command: dict[str, Any] = json.loads(record["text"])
            # the document has no "0" for all; the newest delivery stands for it
            mine = {theirs: ours for (conn, theirs), ours in self.ids.items() if conn == record["conn"]}
            newest = mine[max(mine, key=int)]
            return json.dumps({key: mine.get(value, newest) for key, value in command.items()}).encode()
        return payload


def _config(version: str, scenario: str) -> Config:
    crashes = any("exited with code" in r.get("desc", "") for r in recordings()[version, scenario])
    return Config(faithful_crashes=crashes)


EVERY = pytest.mark.parametrize(("version", "scenario"), list(recordings()))


@EVERY
def test_core(version: str, scenario: str) -> None:
    player = Player(Core(version, _config(version, scenario)), version, scenario)
    player.play()
    assert player.checked


@EVERY
def test_sockets(version: str, scenario: str) -> None:
    with Narconi(profile=version, config=_config(version, scenario)) as narconi, Live(narconi) as live:
        player = Player(live, version, scenario)
        player.play()
        assert player.checked


@pytest.mark.parametrize("scenario", IN_DOCUMENT)
def test_core_as_in_the_document(scenario: str) -> None:
    player = DocumentPlayer(Core("seed"), "0.1.0", scenario)
    player.play()
    assert player.checked


def test_all_are_there() -> None:
    assert sum(map(len, recordings().values())) == 1034
