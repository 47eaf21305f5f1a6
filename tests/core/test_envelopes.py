"""Frames inside frames, peers, and answers that leave on another connection: a small message bus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from fakebrokers.core.connection import Connection
from fakebrokers.core.engine import Engine
from fakebrokers.core.frames import Frame, FrameSpec, KeyType, Role
from fakebrokers.core.session import Broker, Codec, HangUp, Link, Session
from fakebrokers.core.wire import Wire, frames_of
from fakebrokers.faults import Fault, Plan, delay, drop, duplicate, reorder, reply, rewrite
from fakebrokers.faults.injector import Injector
from fakebrokers.journal import Journal


class Request(Frame, frozen=True):
    """A packet: a question of one node to another."""

    spec = FrameSpec({"in": Role.REQUEST, "out": Role.EVENT}, key="number")
    number: int
    text: str = ""


class Response(Frame, frozen=True):
    spec = FrameSpec(Role.RESPONSE, key="number")
    number: int
    text: str = ""


class Packets:
    """What is inside a `Message`: ``req 7 text``."""

    def kinds(self) -> Iterable[type[Frame]]:
        return (Request, Response)

    def open(self, envelope: Any) -> Frame | None:
        word, number, text = [*envelope.body.split(" ", 2), "", ""][:3]
        kind = {"req": Request, "res": Response}.get(word)
        return kind(int(number), text) if kind else None

    def wrap(self, envelope: Any, inner: Frame) -> Frame:
        assert isinstance(inner, Request | Response)
        word = "req" if isinstance(inner, Request) else "res"
        return Message(envelope.topic, f"{word} {inner.number} {inner.text}".rstrip())


class Message(Frame, frozen=True):
    spec = FrameSpec(Role.DATA, key="topic", keys=KeyType.TEXT, inside=Packets())
    topic: str
    body: str


class Name(Frame, frozen=True):
    spec = FrameSpec(Role.HANDSHAKE)
    node: str


BUS = Wire("bus", [Message, Name])


class BusCodec(Codec):
    def feed(self, unit: bytes) -> Iterable[tuple[Frame, int]]:
        for line in unit.decode().splitlines():
            topic, _, body = line.partition(":")
            yield (Name(body) if topic == "name" else Message(topic, body)), len(line) + 1

    def encode(self, frame: Frame) -> bytes:
        assert isinstance(frame, Message)
        return f"{frame.topic}:{frame.body}\n".encode()


class Bus(Broker):
    def __init__(self) -> None:
        self.listening: list[BusSession] = []

    def reset(self) -> None:
        self.listening.clear()


class BusSession(Session):
    """Passes every message on to all that have a name; answers leave where the node listens."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.node = ""

    def handle(self, frame: Frame, now: float) -> None:
        if isinstance(frame, Name):
            self.node = frame.node.removesuffix("!")
            self.link.identify(self.node)
            if frame.node == self.node:
                self.bus.listening.append(self)
        else:
            for session in self.bus.listening:
                session.link.say(frame)

    def answers_on(self) -> Link:
        return next((each.link for each in self.bus.listening if each.node == self.node), self.link)

    def refusal(self, frame: Frame, code: int, now: float) -> Frame | None:
        return Message("answers", f"res {frame.number} no {code}") if isinstance(frame, Request) else None


class Pipe:
    def __init__(self) -> None:
        self.got = b""

    def write(self, units: list[Any]) -> None:
        self.got += b"".join(units)

    def hang_up(self, how: HangUp) -> None: ...

    def stop_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Conversation:
    """Node a asks on one connection (c1) and listens on another (c2); b listens on c3."""

    def __init__(self, *faults: Fault) -> None:
        self.bus = Bus()
        injector = Injector([BUS], plan=Plan(faults=faults))
        self.engine = Engine(self.bus, injector, Journal(frames_of([BUS])))
        self.pipes: list[Pipe] = []
        self.links: list[Connection] = []
        for name in (b"a!", b"a", b"b"):
            self.pipes.append(Pipe())
            session = BusSession(self.bus)
            self.links.append(self.engine.accept(BUS, session, BusCodec(), self.pipes[-1], 0.0))
            self.say(b"name:" + name, on=len(self.links))

    def say(self, *lines: bytes, on: int = 1, now: float = 0.0) -> list[list[str]]:
        """Say lines on one connection; returns what came on all of them."""
        self.engine.receive(self.links[on - 1], b"".join(line + b"\n" for line in lines), now)
        self.engine.flush(now)
        return self.heard()

    def heard(self) -> list[list[str]]:
        texts = [pipe.got.decode().splitlines() for pipe in self.pipes]
        for pipe in self.pipes:
            pipe.got = b""
        return texts


QUESTIONS = (b"t:req 1 one", b"t:hello", b"t:req 2 two", b"t:req 3 three")


def test_without_faults() -> None:
    talk = Conversation()
    texts = [line.decode() for line in QUESTIONS]
    assert talk.say(*QUESTIONS) == [[], texts, texts]


def test_a_fault_finds_a_packet_by_its_kind_or_role_inside_the_envelope() -> None:
    by_number = {"where": {"number": 2}, "kind": "Request"}
    for how in ({"kind": "Request", "nth": 2}, {"role": "request", "nth": 2}, by_number):
        talk = Conversation(drop(direction="in", **how))
        assert talk.say(*QUESTIONS)[2] == ["t:req 1 one", "t:hello", "t:req 3 three"]
    talk = Conversation(drop(kind="Message", direction="in", nth=2))
    assert talk.say(*QUESTIONS)[2] == ["t:req 1 one", "t:req 2 two", "t:req 3 three"]


def test_the_role_of_a_packet_depends_on_its_direction() -> None:
    talk = Conversation(drop(role="event", nth=1))
    assert talk.say(*QUESTIONS)[1:] == [["t:hello", "t:req 2 two", "t:req 3 three"]] * 2
    assert talk.engine.injector.find("fault 1").fired == 2


def test_what_is_done_to_a_packet_is_wrapped_again() -> None:
    talk = Conversation(rewrite({"text": "other"}, kind="Request", direction="out", nth=1, connection="c3"))
    assert talk.say(*QUESTIONS)[2][0] == "t:req 1 other"
    talk = Conversation(duplicate(kind="Request", direction="in", nth=3))
    assert talk.say(*QUESTIONS)[2][-2:] == ["t:req 3 three"] * 2


def test_packets_that_change_places_keep_their_envelopes() -> None:
    talk = Conversation(reorder(window=2, kind="Request", direction="out", connection="c3"))
    assert talk.say(b"t:req 1 one", b"u:req 2 two")[2] == ["u:req 2 two", "t:req 1 one"]


def test_faults_on_both_levels_act_one_after_another() -> None:
    talk = Conversation(
        rewrite({"text": "inner"}, kind="Request", direction="in"),
        rewrite({"topic": "outer"}, kind="Message", direction="in"),
        delay(1.0, kind="Request", direction="out", connection="c3"),
    )
    assert talk.say(b"t:req 1 one") == [[], ["outer:req 1 inner"], []]
    talk.engine.handle_timers(1.0)
    talk.engine.flush(1.0)
    assert talk.heard()[2] == ["outer:req 1 inner"]


def test_an_answer_leaves_on_the_connection_where_the_node_listens() -> None:
    talk = Conversation(reply(5, kind="Request", nth=1))
    assert talk.say(b"t:req 1 one") == [[], ["answers:res 1 no 5"], []]


def test_faults_go_by_peers() -> None:
    talk = Conversation(drop(kind="Message", direction="out", peer="b", nth=1))
    assert talk.say(b"t:x", b"t:y") == [[], ["t:x", "t:y"], ["t:y"]]
    assert talk.engine.injector.find("fault 1").fired == 1


def test_all_connections_of_a_peer_count_together() -> None:
    talk = Conversation(drop(kind="Message", direction="in", scope="peer", nth=2))
    assert talk.say(b"t:1", on=1)[2] == ["t:1"]
    assert talk.say(b"t:2", on=2)[2] == []  # the second one of node a
    assert talk.say(b"t:3", on=3)[2] == ["t:3"]  # the first one of node b


def test_the_journal_has_the_envelope_the_packet_and_the_peer() -> None:
    talk = Conversation(drop(kind="Request", direction="in", nth=2))
    talk.say(b"t:req 1 one", b"t:req 2 two")
    records = [r for r in talk.engine.journal if r.tap.direction == "in" and r.kind != "Name"]
    assert [(r.kind, r.envelope, r.keys, r.tap.label, r.fault, r.peer) for r in records] == [
        ("Message", "", ("t",), "in", "", "a"),
        ("Request", "Message", (1,), "in", "", "a"),
        ("Message", "", ("t",), "received", "fault 1", "a"),
        ("Request", "Message", (2,), "received", "fault 1", "a"),
    ]
    assert [r.role for r in talk.engine.journal.select(kind="Request", connection="c3")] == ["event"]


def test_packets_stay_closed_until_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    true = Packets.open
    monkeypatch.setattr(Packets, "open", lambda self, it: opened.append(it.body) or true(self, it))
    talk = Conversation()
    talk.say(b"t:req 1 one", b"t:no packet")
    mark = talk.engine.journal.last_seq
    assert opened == []
    for _ in range(2):  # the second time from what the first one found
        assert [r.keys for r in talk.engine.journal.select(kind="Request", connection="c1")] == [(1,)]
    assert sorted(opened) == ["no packet", "req 1 one"]  # what one said; nobody asked what the others heard
    for _ in range(2):
        assert len(talk.engine.journal.select(kind="Request")) == 3
    assert sorted(opened) == ["no packet"] * 3 + ["req 1 one"] * 3
    watched: list[str] = []
    stop = talk.engine.journal.watch(lambda record: watched.append(record.kind))
    talk.say(b"t:req 2 two")
    stop()
    assert watched.count("Request") == watched.count("Message") > 0
    after = [r.kind for r in talk.engine.journal.records(since=mark)]
    assert after == watched, "in the order in which they came, whoever looks first"
