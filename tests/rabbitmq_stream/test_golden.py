"""The codec against every frame that was recorded on three real server versions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.frames import Deliver, PartitionsResponse, RouteResponse
from tests.rabbitmq_stream.golden import SERVERS, Case, case, cases

ALL = pytest.mark.parametrize("golden", cases(), ids=str)

#: What clients sent on purpose that no server takes, and what the codec makes of it.
MALFORMED = {
    "subscribe_bad_offset_type": "bad-offset",
    "publish_truncated_entry": "crash",
    "bad_unknown_key": "unknown",
    "bad_unknown_version": "unknown",
    "bad_empty_frame": "empty",
    "bad_short_frame": "unknown",
    "bad_trailing_bytes": "unknown",
    "bad_response_unasked": "unknown",
    "bad_server_cmd_from_client": "unknown",
    "bad_truncated_create": "unknown",
    "close_by_server_acked": "unknown",
    "close_by_server_unacked": "unknown",
}

#: Size prefixes with fewer bytes behind them: cut short by the recorder, or garbage from the start.
NEVER_WHOLE = {
    "frame_max_zero_client",
    "frame_too_large",
    "frame_too_large_client_limit",
    "garbage_after_open",
    "garbage_first",
    "length_huge_prefix",
    "peer_properties_9000",
    "tls_hello_on_plain",
}

#: Read by the server all the same, but not as it is written back.
NOT_IDENTICAL = {
    "tune_response_key": "0x8014 is read as 0x0014",
}


def codec(side: str, golden: Case) -> StreamCodec:
    return StreamCodec(side, response_bit_on_routes=golden.server != "3.10.8")  # type: ignore[arg-type]


def decoded(codec: StreamCodec, data: bytes) -> list[Frame]:
    return [frame for frame, _ in codec.feed(data)]


@ALL
def test_server_frames_are_read_by_a_client_and_written_back(golden: Case) -> None:
    client = codec("client", golden)
    frames = decoded(client, golden.server_bytes)
    assert not [frame for frame in frames if isinstance(frame, Malformed)]
    assert b"".join(map(codec("server", golden).encode, frames)) == golden.server_bytes
    assert client.partial == 0


@ALL
def test_client_frames_are_read_by_a_server_and_written_back(golden: Case) -> None:
    server = codec("server", golden)
    frames = decoded(server, golden.client_bytes)
    malformed = [frame.code for frame in frames if isinstance(frame, Malformed)]
    assert malformed == ([MALFORMED[golden.id]] if golden.id in MALFORMED else [])
    written = b"".join(map(codec("client", golden).encode, frames))
    if golden.id in NEVER_WHOLE:
        assert not frames
        assert server.partial == len(golden.client_bytes)
    else:
        assert (written == golden.client_bytes) == (golden.id not in NOT_IDENTICAL)
        assert server.partial == 0


def test_exceptions_are_all_needed() -> None:
    ids = {golden.id for golden in cases()}
    assert ids >= {*MALFORMED, *NEVER_WHOLE, *NOT_IDENTICAL}


@pytest.mark.parametrize("server", SERVERS)
def test_real_servers_agree_on_what_is_malformed(server: str) -> None:
    """Crashes ended with a bare end of the connection, unknown frames with Close 13."""
    for golden in cases(server):
        expected = MALFORMED.get(golden.id)
        if expected in {"crash", "bad-offset"}:
            assert golden.closed
            assert not golden.server_bytes
        elif expected == "unknown":
            assert b"unknown frame" in golden.server_bytes


def deliveries(golden: Case) -> Iterator[Deliver]:
    frames = decoded(codec("client", golden), golden.server_bytes)
    return (frame for frame in frames if isinstance(frame, Deliver))


def test_recorded_chunks_have_the_right_crc() -> None:
    chunks = [delivery.chunk for golden in cases() for delivery in deliveries(golden)]
    assert len(chunks) > 100
    for chunk in chunks:
        assert chunk.crc_ok
        assert chunk.length_ok
        assert chunk.header() + chunk.data in b"".join(golden.server_bytes for golden in cases())


def test_deliver_v2() -> None:
    (first, *_) = deliveries(case("4.3.6", "deliver_v2"))
    assert (first.version, first.committed_chunk_id, first.chunk.first_offset) == (2, 16, 0)


def test_routes_of_3_10_lack_the_response_bit() -> None:
    answers = [
        frame
        for golden in cases("3.10.8")
        for frame in decoded(codec("client", golden), golden.server_bytes)
        if isinstance(frame, RouteResponse | PartitionsResponse)
    ]
    assert answers
    old, new = StreamCodec(response_bit_on_routes=False), StreamCodec()
    for frame in answers:
        assert old.encode(frame)[4:6] in {b"\x00\x18", b"\x00\x19"}
        assert new.encode(frame)[4:6] in {b"\x80\x18", b"\x80\x19"}


def test_frame_above_the_limit_is_refused_as_on_4_3() -> None:
    golden = case("4.3.6", "frame_too_large_client_limit")
    (frame,) = decoded(StreamCodec(max_frame=1024), golden.client_bytes[:4])
    assert isinstance(frame, Malformed)
    assert frame.code == "too-large"
