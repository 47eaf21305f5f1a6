"""The fake beside what a real nats-server answered to the golden vectors; see `recorded`."""

from __future__ import annotations

import json

import pytest

from conformance.decoders.nats import NatsDecoder
from fakebrokers import NATS
from fakebrokers.core.frames import Malformed
from fakebrokers.nats.codec import NatsCodec
from fakebrokers.nats.frames import Info
from tests.bench import Bench
from tests.conformance.decoders.alike import read
from tests.conformance.decoders.test_vectors import nothing_of, otherwise
from tests.nats import layouts
from tests.nats.recorded import conversations, heard, info, recorded
from tests.real_buses import required


def answered(said: bytes) -> tuple[bytes, bool]:
    bench = Bench(NATS())
    client = bench.connect()
    client.take()
    return client.say(said), client.ended is not None


def test_the_fake_answers_as_the_real_server_did() -> None:
    problems: list[str] = []
    for each in recorded():
        problems += otherwise(each.name, (each.heard, each.ended), answered(each.said))
    nothing_of(problems)


def test_both_read_what_the_real_server_said_and_the_fake_writes_it() -> None:
    problems: list[str] = []
    for each in recorded():
        ours = read(NatsDecoder("client"), [each.heard])
        theirs = list(NatsCodec("client").feed(each.heard))
        problems += otherwise(each.name, ours, theirs)
        problems += [f"{each.name}: {frame}" for frame, _ in ours if isinstance(frame, Malformed)]
        written = b"".join([NatsCodec().encode(frame) for frame, _ in ours])
        problems += otherwise(f"written {each.name}", each.heard, written)
    nothing_of(problems)


def test_all_vectors_are_recorded() -> None:
    """A new one has to be recorded, too: see `recorded`."""
    assert [(each.name, each.said) for each in recorded()] == list(conversations())


#: Of INFO: what says who the server is, and what it runs on; TLS and JetStream, which the fake does not have.
ITS_OWN = {
    "server_id",
    "server_name",
    "version",
    "go",
    "git_commit",
    "host",
    "port",
    "client_id",
    "client_ip",
    "xkey",
}


def test_info_says_what_the_real_one_does() -> None:
    ((ours, size),) = read(NatsDecoder("client"), [info()])
    assert size == len(info())
    assert list(NatsCodec("client").feed(info())) == [(ours, size)]
    assert isinstance(ours, Info)
    assert ours.options == json.loads(info()[5:])
    client = Bench(NATS()).connect()
    ((told, _),) = read(NatsDecoder("client"), [client.take()])
    assert isinstance(told, Info)
    types = {name: type(value) for name, value in ours.options.items() if name in told.options}
    assert {name: type(told.options[name]) for name in types} == types
    assert told.options.keys() - ours.options.keys() == set()
    same = (ours.options.keys() | told.options.keys()) - ITS_OWN
    assert {name: told.options.get(name) for name in same} == {name: ours.options.get(name) for name in same}
    assert len(str(told.options["server_id"])) == len(str(ours.options["server_id"]))
    assert told.options["max_payload"] == layouts.LARGEST


@pytest.mark.full
def test_the_server_on_this_machine_still_answers_so() -> None:
    required("nats")
    problems: list[str] = []
    for then, (_, now) in zip(recorded(), heard(), strict=True):
        problems += otherwise(then.name, then, now)
    nothing_of(problems)
