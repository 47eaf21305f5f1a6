"""The fake beside what a real nats-server answered to the golden vectors; see `recorded`."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest

from conformance.decoders.nats import NatsDecoder
from fakebrokers import NATS
from fakebrokers.core.frames import Malformed
from fakebrokers.nats.codec import NatsCodec
from fakebrokers.nats.frames import Info
from tests.bench import Bench
from tests.conformance.decoders.alike import nothing_of, otherwise, read
from tests.nats import infos
from tests.nats.recorded import conversations, heard, info, recorded
from tests.nats.test_nodes import open_bench
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


def test_the_first_line_is_read_alike() -> None:
    ((ours, size),) = read(NatsDecoder("client"), [info()])
    assert list(NatsCodec("client").feed(info())) == [(ours, size)]
    assert isinstance(ours, Info)
    assert (ours.options, size) == (json.loads(info()[5:]), len(info()))


def plain(options: Mapping[str, Any], port: int) -> list[tuple[str, Any]]:
    """INFO in the order of the wire, with what is another one's at each start in the same words."""
    own = {
        "server_id": lambda value: (len(value), value[0]),
        "server_name": lambda value: value == options["server_id"],
        "port": lambda value: value == port,
        "client_id": lambda value: type(value).__name__,
        "nonce": lambda value: (len(value), len(base64.urlsafe_b64decode(value + "="))),
        "cluster": lambda value: type(value).__name__,
        "connect_urls": lambda value: [each == f"127.0.0.1:{port}" for each in value],
    }
    return [(name, own.get(name, lambda value: value)(value)) for name, value in options.items()]


@pytest.mark.parametrize("row", infos.recorded(), ids=lambda row: row["mode"])
def test_info_is_that_of_the_real_one_however_it_was_started(row: dict[str, Any]) -> None:
    bench = open_bench(**infos.MODES[row["mode"]][1])
    for node in bench.fake.nodes:
        node.tls_port = node.port
    client = bench.connect(len(bench.fake.nodes) if row["mode"] == "TLS" else 0)
    told = client.take()
    if len(row["infos"]) > 1:
        client.say(infos.NEWS)
        bench.fake.lame_duck(1)
        told += client.take()
    ours = [frame.options for frame, _ in NatsDecoder("client").feed(told) if isinstance(frame, Info)]
    found = [plain(options, bench.fake.nodes[0].port) for options in ours]
    assert found == [plain(options, row["port"]) for options in row["infos"]]


@pytest.mark.full
def test_the_server_on_this_machine_still_answers_so() -> None:
    required("nats")
    problems: list[str] = []
    for then, (_, now) in zip(recorded(), heard(), strict=True):
        problems += otherwise(then.name, then, now)
    nothing_of(problems)
