"""`explain`, for debugging: readable, without credentials, and it never raises."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.explain import explain
from fakebrokers.rabbitmq_stream.frames import Heartbeat, SaslAuthenticate
from fakebrokers.rabbitmq_stream.publishing import publish
from tests.rabbitmq_stream.golden import case, cases


def test_names_frames_fields_and_senders() -> None:
    golden = case("4.3.6", "tune_open_ok")
    text = explain(golden.client_bytes + golden.server_bytes)
    assert "Tune  client or server  16 bytes\n    frame_max = 1048576\n    heartbeat = 60" in text
    assert "Open  client -> server  15 bytes\n    correlation_id = 4\n    virtual_host = '/'" in text
    assert "OpenResponse  server -> client  70 bytes" in text


def test_looks_into_chunks_and_batches() -> None:
    text = explain(case("4.3.6", "subscribe_last").server_bytes)
    assert "chunk.first_offset = 7" in text
    assert "items: 7, 8" in text
    many = explain(StreamCodec().encode(publish(1, [(n, b"x" * 99) for n in range(20)])))
    assert "items: 0, 1, 2, 3, 4, 5, 6, 7 and 12 more" in many
    assert "(2060 bytes)" in many


def test_credentials_are_left_out() -> None:
    text = explain(StreamCodec().encode(SaslAuthenticate(1, "PLAIN", b"\0guest\0guest")))
    assert "data = (secret)" in text
    assert "guest" not in text


def test_says_what_is_wrong_and_what_is_missing() -> None:
    wire = StreamCodec().encode(Heartbeat())
    text = explain(bytes.fromhex("0000000400c80001") + wire[:5])
    assert "Malformed  not readable  8 bytes" in text
    assert "key 0x00c8" in text
    assert text.endswith("5 bytes of a frame that is not whole")


@given(st.binary(max_size=100), st.sampled_from(cases("4.3.6")), st.integers(0), st.integers(0, 255))
def test_never_raises(data: bytes, golden, at: int, byte: int) -> None:  # type: ignore[no-untyped-def]
    explain(data)
    damaged = bytearray(golden.server_bytes + golden.client_bytes)
    if damaged:
        damaged[at % len(damaged)] = byte
    explain(bytes(damaged))
