"""Messages to frames and back, in both directions, the recorded ones and any others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.core.frames import Malformed
from fakebrokers.pzq.codec import (
    ConsumerCodec,
    InquirerCodec,
    MonitorCodec,
    ProducerCodec,
    ReceiveCodec,
    SendCodec,
)
from fakebrokers.pzq.frames import (
    FRAMES,
    ConsumerAck,
    Delivery,
    MonitorReply,
    MonitorRequest,
    Produce,
    ProduceAck,
    ProduceNack,
)

CODECS = [ReceiveCodec(), SendCodec(), MonitorCodec(), ProducerCodec(), ConsumerCodec(), InquirerCodec()]
part = st.binary(max_size=12) | st.sampled_from([b"", b"0", b"1", b"OK", b"5000000", b"007", b"-1"])
parts = st.lists(part, max_size=9).map(tuple)


def read(codec: Any, *unit: bytes) -> Any:
    ((frame, size),) = codec.feed(unit)
    assert size == sum(map(len, unit))
    return frame


@pytest.mark.parametrize("codec", CODECS, ids=lambda c: type(c).__name__)
@given(unit=parts)
def test_every_readable_message_comes_out_as_it_went_in(codec: Any, unit: tuple[bytes, ...]) -> None:
    frame = read(codec, *unit)
    if isinstance(frame, Malformed):
        assert frame.problem.startswith("expected [") or not unit
    else:
        assert codec.encode(frame) == unit


def recorded() -> list[Any]:
    """(codec of the reading end, parts as the broker's socket or the client's DEALER has them)"""
    rows = []
    path = Path(__file__).parent / "vectors" / "pzq.jsonl"
    for record in map(json.loads, path.read_text().splitlines()):
        if not record.get("parts"):
            continue
        unit = tuple(bytes.fromhex(p) for p in record["parts"])
        socket, direction = record["socket"], record["dir"]
        if socket.startswith("consumer"):
            unit = unit if socket != "consumer" and "-" in socket and socket[-1] not in "AB" else unit[1:]
            codec: Any = SendCodec() if direction == "c2s" else ConsumerCodec()
        elif socket.startswith("monitor"):
            unit = (b"", *unit) if socket == "monitor" else unit
            codec = MonitorCodec() if direction == "c2s" else InquirerCodec()
        else:
            unit = (b"", *unit) if socket == "producer-REQ" else unit
            codec = ReceiveCodec() if direction == "c2s" else ProducerCodec()
        rows.append(pytest.param(codec, unit, id=f"{record['seq']}-{record['dir']}"))
    return rows


@pytest.mark.parametrize(("codec", "unit"), recorded())
def test_recorded_messages(codec: Any, unit: tuple[bytes, ...]) -> None:
    frame = read(codec, *unit)
    if not isinstance(frame, Malformed):
        assert type(frame) in FRAMES
        assert codec.encode(frame) == unit


@pytest.mark.parametrize(
    ("unit", "frame"),
    [
        ((b"i", b"", b"x"), Produce(b"i", (), (b"x",))),
        ((b"i", b"h", b"g", b"", b"a", b"", b"b"), Produce(b"i", (b"h", b"g"), (b"a", b"", b"b"))),
        ((b"", b"", b"x"), Produce(b"", (), (b"x",))),
        ((b"i", b""), Produce(b"i", (), ())),
        ((b"i", b"x"), Produce(b"i", (b"x",), None)),
    ],
)
def test_produce(unit: tuple[bytes, ...], frame: Produce) -> None:
    assert read(ReceiveCodec(), *unit) == frame


@pytest.mark.parametrize("unit", [(), (b"only",), (b"",)])
def test_a_single_part_is_no_message(unit: tuple[bytes, ...]) -> None:
    frame = read(ReceiveCodec(), *unit)
    assert frame.code == "no-parts"
    assert f"got {len(unit)} part" in frame.problem


def test_malformed_messages_keep_only_their_front() -> None:
    frame = read(SendCodec(), b"k" * 100_000)
    assert frame.data == b"k" * 256
    assert frame.code == "no-status"


@pytest.mark.parametrize(
    ("unit", "frame"),
    [
        ((b"i", b"1", b""), ProduceAck(b"i")),
        ((b"i", b"1", b"h", b"", b"t"), ProduceAck(b"i", headers=(b"h",), texts=(b"t",))),
        ((b"i", b"0", b"", b"disk", b"\xff"), ProduceNack(b"i", texts=(b"disk", b"\xff"))),
        ((b"i", b"11", b""), ProduceNack(b"i", b"11")),
        ((b"i", b"", b""), ProduceNack(b"i", b"")),
        ((b"i", b"1"), ProduceAck(b"i", texts=None)),
        ((b"i",), ProduceNack(b"i", None, texts=None)),
    ],
)
def test_answers(unit: tuple[bytes, ...], frame: Any) -> None:
    assert read(ProducerCodec(), *unit) == frame
    assert ReceiveCodec().encode(frame) == unit


@pytest.mark.parametrize(
    ("unit", "frame"),
    [
        ((b"k", b"17", b"5", b"", b"x"), Delivery(b"k", 17, 5, (), (b"x",))),
        ((b"k", b"17", b"5", b"h", b"", b""), Delivery(b"k", 17, 5, (b"h",), (b"",))),
        ((b"k", b"abc", b"x", b"", b"x"), Delivery(b"k", b"abc", b"x", (), (b"x",))),
        ((b"k", b"9" * 40, b"5", b""), Delivery(b"k", b"9" * 40, 5, (), ())),
        ((b"k", b"17", b"5"), Delivery(b"k", 17, 5, (), None)),
        ((b"k", b"", b"x"), Delivery(b"k", None, None, (), (b"x",))),
        ((b"k",), Delivery(b"k", None, None, (), None)),
        ((b"",), Delivery(b"", None, None, (), None)),
    ],
)
def test_deliveries(unit: tuple[bytes, ...], frame: Delivery) -> None:
    assert read(ConsumerCodec(), *unit) == frame
    assert SendCodec().encode(frame) == unit


@pytest.mark.parametrize(("status", "code"), [(b"1", 1), (b"0", 0), (b"OK", 0), (b"01", 0), (b"", 0)])
def test_only_one_status_is_positive(status: bytes, code: int) -> None:
    frame = read(SendCodec(), b"k", status, b"extra")
    assert frame == ConsumerAck(b"k", status, (b"extra",))
    assert frame.code == code


def test_monitor() -> None:
    assert read(MonitorCodec(), b"", b"MONITOR") == MonitorRequest(b"MONITOR", (b"",))
    assert read(MonitorCodec(), b"r", b"", b"x", b"MONITOR").command == b"MONITOR"
    assert MonitorCodec().encode(MonitorReply(b"a: 1\n")) == (b"", b"a: 1\n")
    assert read(InquirerCodec(), b"", b"a: 1\n") == MonitorReply(b"a: 1\n")
    assert read(InquirerCodec(), b"a: 1\n").code == "no-delimiter"


def test_fault_plans_may_write_text_and_numbers() -> None:
    assert SendCodec().encode(Delivery("k", "abc", -1, body=("x",))) == (b"k", b"abc", b"-1", b"", b"x")  # type: ignore[arg-type]
