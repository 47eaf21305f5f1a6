"""Packets: the recordings both ways in every serializer, and bytes that are no packet."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from fakebrokers.moleculer.nats.frames import Msg
from fakebrokers.moleculer.packets import (
    BY_COMMAND,
    PACKETS,
    Event,
    Info,
    Packet,
    Packets,
    Request,
    Response,
    packet_from,
    read_packet,
    values_of,
    write_packet,
)
from fakebrokers.moleculer.serialization import SERIALIZERS, find_serializer, serializer_of
from fakebrokers.moleculer.serializers import Unreadable
from tests.moleculer.golden import Row, rows

RECORDED = pytest.mark.parametrize("row", rows("packet"), ids=str)


def packet_of(row: Row) -> Packet:
    return read_packet(row.values["topic"], row.data)


@RECORDED
def test_recorded_packets_are_read_and_written_back(row: Row) -> None:
    packet = packet_of(row)
    serializer = find_serializer(row.values["serializer"])
    written = serializer.write(packet.COMMAND, values_of(packet))
    if row.data != written:
        assert isinstance(packet, Response)
        assert (packet.success, packet.stream) == (False, False)
        assert msgspec.json.decode(written) == msgspec.json.decode(row.data)


@RECORDED
def test_the_first_bytes_tell_the_serializer(row: Row) -> None:
    same = {"Notepack": "MsgPack", "JSONExt": "JSON"}
    name = row.values["serializer"]
    assert serializer_of(row.data).name == same.get(name, name)


@pytest.mark.parametrize("payload", ['{"id":NaN}', '{"id":-Infinity}', "\ufeff{}"])
def test_what_javascript_takes_for_no_json_is_none(payload: str) -> None:
    for encoding in ("utf-8", "utf-16"):
        with pytest.raises(Unreadable):
            find_serializer("JSON").read("REQ", payload.encode(encoding))
    assert find_serializer("JSON").read("REQ", b'{"id":"\\ud800","level":1e999}')["level"] == float("inf")


@RECORDED
def test_the_fields_are_known(row: Row) -> None:
    assert not packet_of(row).more


def test_recordings_have_all_serializers_and_packets() -> None:
    assert {row.values["serializer"] for row in rows("packet")} == set(SERIALIZERS)
    assert {type(packet_of(row)) for row in rows("packet")} == set(PACKETS)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)
MAPS = st.dictionaries(st.text(min_size=1, max_size=5), VALUES, max_size=2)
TEXT = st.text(max_size=12)


@pytest.mark.parametrize("name", SERIALIZERS)
def test_what_is_written_is_read_again(name: str) -> None:
    serializer = find_serializer(name)

    @given(TEXT, VALUES, MAPS, st.booleans(), st.integers(0, 1000), st.binary(max_size=5))
    def check(text: str, value: object, meta: object, flag: bool, seq: int, data: bytes) -> None:
        nothing: Any = dict.fromkeys(("tracing", "parentID", "caller"))
        payload = data if data and name not in ("JSON", "MsgPack", "Notepack", "CBOR") else value
        packets: list[Packet] = [
            Request(
                id=text,
                action=text,
                params=payload,
                meta=meta,
                timeout=0.5,
                level=seq,
                stream=flag,
                seq=seq,
                **nothing,
            ),
            Response(id=text, meta=meta, success=flag, data=payload),
            Event(
                id=text,
                event=text,
                data=payload,
                groups=[text],
                broadcast=flag,
                meta=meta,
                level=1,
                needAck=None,
                **nothing,
            ),
        ]
        for packet in packets:
            signed = msgspec.structs.replace(packet, ver="4", sender=text)
            written = serializer.write(signed.COMMAND, values_of(signed))
            assert packet_from(type(packet), serializer.read(signed.COMMAND, written)) == signed

    check()


@pytest.mark.parametrize("name", SERIALIZERS)
def test_no_bytes_make_it_fail(name: str) -> None:
    serializer = find_serializer(name)
    recorded = [row for row in rows("packet") if row.values["serializer"] == name]

    @given(st.sampled_from(recorded), st.data())
    def check(row: Row, draw: st.DataObject) -> None:
        data = bytearray(row.data)
        for _ in range(draw.draw(st.integers(1, 4))):
            data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
        cut = bytes(data[: draw.draw(st.integers(0, len(data)))])
        for broken in (bytes(data), cut):
            try:
                read_packet(row.values["topic"], broken, serializer)
            except Unreadable as problem:
                assert str(problem).startswith("expected ")

    check()


@given(st.sampled_from(sorted(BY_COMMAND)), st.binary(max_size=60))
def test_nothing_comes_out_of_noise(command: str, noise: bytes) -> None:
    found = Packets("subject").open(Msg(f"MOL.{command}.n", "1", noise))
    assert found is None or isinstance(found, BY_COMMAND[command])


def test_json_is_what_javascript_takes_for_it() -> None:
    lone = read_packet("MOL.RES.a", b'{"data":"\\ud800"}')
    assert isinstance(lone, Response)
    assert lone.data == "\ud800"
    assert write_packet(lone, b"{") == b'{"data":"\\ud800"}'
    for payload, problem in ((b"", "expected JSON"), (b"[1]", "expected an object"), (b"{", "expected JSON")):
        with pytest.raises(Unreadable, match=problem):
            read_packet("MOL.REQ.a", payload)
    assert read_packet("MOL.REQ.a", b"null") == Request()


def test_absent_is_not_null() -> None:
    packet = read_packet("MOL.RES.a", b'{"id":"1","data":null,"x":[1]}')
    assert isinstance(packet, Response)
    assert (packet.data, packet.error, packet.more) == (None, UNSET, {"x": [1]})
    assert write_packet(packet, b"{") == b'{"id":"1","data":null,"x":[1]}'


@pytest.mark.parametrize(
    ("error", "status"), [({"code": 404}, 404), ({"code": "x"}, 500), ({}, 500), ("text", 500), (None, 500)]
)
def test_status_of_a_failure(error: object, status: int) -> None:
    assert Response(success=False, error=error).status == status
    assert Response(success=True).status == 200


def test_buffers_in_json() -> None:
    written = find_serializer("JSON").write("RES", {"data": {"a": [b"\x01\xff"]}})
    assert written == b'{"data":{"a":[{"type":"Buffer","data":[1,255]}]}}'


def test_marks_of_json_ext() -> None:
    serializer = find_serializer("JSONExt")
    written = serializer.write("RES", {"data": [b"a", "[[BF]]", 2**60]})
    assert written == b'{"data":["[[BF]]YQ==","[[ES]][[BF]]","[[BI]]1152921504606846976"]}'
    assert serializer.read("RES", written) == {"data": [b"a", "[[BF]]", 2**60]}


def test_the_packet_in_a_message_can_be_another() -> None:
    inside = Packets("subject")
    message = Msg("MOL.INFO", "6", b'{"services":[],"seq":1,"ver":"4","sender":"a"}')
    packet = inside.open(message)
    assert isinstance(packet, Info)
    wrapped = inside.wrap(message, msgspec.structs.replace(packet, seq=2))
    assert wrapped == Msg("MOL.INFO", "6", b'{"services":[],"seq":2,"ver":"4","sender":"a"}')
    assert inside.open(Msg("other", "6", b"{}")) is None
