"""The reference node's serializers with a schema, against what real nodes have written."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.clients.reference.moleculer.packing import RECORDS, Packing
from conformance.clients.reference.moleculer.serializers import SCHEMAS
from fakebrokers.moleculer.serialization import find_serializer
from fakebrokers.moleculer.topics import topic_of
from tests.moleculer.golden import rows

RECORDED = [row for row in rows("packet") if row.values["serializer"] in SCHEMAS]


def command_in(topic: str) -> str:
    parts = topic_of(topic)
    assert parts is not None
    return parts.command


def without_nothing(packet: dict[str, Any]) -> dict[str, Any]:
    """Buffers as JSON has them; without what has no value."""
    shown = {
        name: {"type": "Buffer", "data": list(value)} if isinstance(value, bytes) else value
        for name, value in packet.items()
    }
    return {name: value for name, value in shown.items() if value not in (None, [])}


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_real_nodes_write_is_read_and_written_back(name: str) -> None:
    serializer, seen = SCHEMAS[name](Packing()), set()
    for row in RECORDED:
        if row.values["serializer"] == name:
            command = command_in(row.values["topic"])
            packet = serializer.read(command, row.data)
            wanted = find_serializer(name).read(command, row.data)
            assert without_nothing(packet) == without_nothing(wanted)
            assert serializer.read(command, serializer.write(command, packet)) == packet
            assert find_serializer(name).read(command, serializer.write(command, packet)) is not None
            seen.add(command)
    assert seen >= {"DISCOVER", "INFO", "HEARTBEAT", "DISCONNECT", "REQ", "RES", "EVENT"}


@pytest.mark.parametrize("name", SCHEMAS)
def test_plain_packets_are_written_with_the_same_bytes(name: str) -> None:
    serializer = SCHEMAS[name](Packing())
    plain = ("DISCOVER", "DISCONNECT", "HEARTBEAT", "PING", "PONG")
    found = [row for row in RECORDED if row.values["serializer"] == name]
    for row in found:
        if (command := command_in(row.values["topic"])) in plain:
            assert serializer.write(command, serializer.read(command, row.data)) == row.data


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_cannot_be_read_is_a_value_error(name: str) -> None:
    serializer = SCHEMAS[name](Packing())

    @given(st.sampled_from(sorted(RECORDS)), st.binary(max_size=60))
    def check(command: str, noise: bytes) -> None:
        with suppress(ValueError):
            serializer.read(command, noise)

    check()


@pytest.mark.parametrize("name", SCHEMAS)
def test_numbers_keep_their_sign_and_size(name: str) -> None:
    serializer = SCHEMAS[name](Packing())

    @given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1))
    def check(long: int, short: int) -> None:
        pong = {"ver": "4", "sender": "n", "time": long, "arrived": -1, "id": "x"}
        assert serializer.read("PONG", serializer.write("PONG", pong)) == pong
        hello = {"ver": "4", "sender": "n", "host": "h", "port": short}
        assert serializer.read("GOSSIP_HELLO", serializer.write("GOSSIP_HELLO", hello)) == hello

    check()
