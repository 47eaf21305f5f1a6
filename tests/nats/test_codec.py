"""NATS on the wire: every frame, and bytes that nobody should send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.errors import WireError
from fakebrokers.nats.codec import NatsCodec, Side
from fakebrokers.nats.frames import (
    FRAMES,
    Connect,
    Err,
    Hmsg,
    Hpub,
    Info,
    Msg,
    Ok,
    Ping,
    Pong,
    Pub,
    Sub,
    Unsub,
)
from tests.nats.conftest import Beside


def decoded(data: bytes, side: Side = "server") -> list[Frame]:
    return [frame for frame, _ in NatsCodec(side).feed(data)]


SUBJECT = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20)
SID = st.integers(0, 10**6).map(str)
BODY = st.binary(max_size=200)
HEADERS = BODY.map(lambda data: b"NATS/1.0\r\n" + data + b"\r\n\r\n")
OPTIONS = st.dictionaries(st.sampled_from(["verbose", "lang", "x"]), st.booleans())
SAID = st.one_of(
    st.builds(Connect, OPTIONS, st.dictionaries(st.sampled_from(["user", "pass"]), SUBJECT)),
    st.builds(Sub, SUBJECT, SID, SUBJECT | st.just("")),
    st.builds(Unsub, SID, st.none() | st.integers(0, 10**6)),
    st.builds(Pub, SUBJECT, BODY, SUBJECT | st.just("")),
    st.builds(Hpub, SUBJECT, HEADERS, BODY, SUBJECT | st.just("")),
    st.sampled_from([Ping(), Pong(), Ok()]),
)
HEARD = st.one_of(
    st.builds(Info, OPTIONS),
    st.builds(Msg, SUBJECT, SID, BODY, SUBJECT | st.just("")),
    st.builds(Hmsg, SUBJECT, SID, HEADERS, BODY, SUBJECT | st.just("")),
    st.builds(Err, st.just("Stale Connection")),
    st.sampled_from([Ping(), Pong(), Ok()]),
)


@pytest.mark.parametrize(("side", "frames"), [("server", SAID), ("client", HEARD)])
def test_every_frame_comes_back_however_it_is_cut(side: Side, frames: st.SearchStrategy[Frame]) -> None:
    @given(st.lists(frames, max_size=5), st.data())
    def check(said: list[Frame], data: st.DataObject) -> None:
        whole = b"".join(map(NatsCodec().encode, said))
        cut = data.draw(st.integers(0, len(whole)))
        codec = NatsCodec(side)
        found = [*codec.feed(whole[:cut]), *codec.feed(whole[cut:])]
        assert [frame for frame, _ in found] == said
        assert sum(size for _, size in found) == len(whole)
        assert codec.partial == 0

    check()


def test_all_frames_are_tried() -> None:
    tried = {Connect, Sub, Unsub, Pub, Hpub, Ping, Pong, Ok, Info, Msg, Hmsg, Err}
    own = {kind for kind in FRAMES if kind.__module__ == Msg.__module__}
    assert own == tried


@given(st.lists(st.binary(max_size=60) | st.sampled_from([b"PUB a 3\r\n", b"\r\n", b"CONNECT "]), max_size=8))
def test_no_bytes_make_it_fail(segments: list[bytes]) -> None:
    for side in ("server", "client"):
        codec = NatsCodec(side)  # type: ignore[arg-type]
        total = 0
        for segment in segments:
            total += len(segment)
            for frame, _ in codec.feed(segment):
                assert isinstance(frame, Frame)
        assert codec.partial <= total


def test_nothing_is_read_behind_bytes_that_are_no_frame() -> None:
    codec = NatsCodec()
    (found,) = codec.feed(b"FOO\r\nPING\r\n")
    assert isinstance(found[0], Malformed)
    assert found[0].problem.startswith("expected one of PING, PONG")
    assert list(codec.feed(b"PING\r\n")) == []
    assert codec.partial == 0


def test_a_payload_in_single_bytes_is_not_looked_at_again_and_again() -> None:
    codec = NatsCodec()
    said = b"PUB a 20000\r\n" + b"x" * 20000 + b"\r\n"
    frames = [frame for at in range(len(said)) for frame, _ in codec.feed(said[at : at + 1])]
    assert frames == [Pub("a", b"x" * 20000)]


@pytest.mark.parametrize("cut", range(9, 15))
def test_a_payload_that_is_a_byte_too_short_is_an_error_however_it_is_cut(cut: int) -> None:
    """nats-server 2.9.10 looks at the byte after the payload as soon as it is there."""
    said, codec = b"PUB a 5\r\n1234\r\n", NatsCodec()
    (found,) = (frame for part in (said[:cut], said[cut:]) for frame, _ in codec.feed(part))
    assert isinstance(found, Malformed) and found.code == "unknown"


def test_limits() -> None:
    assert isinstance(decoded(b"PUB a 99999999999\r\n")[0], Malformed)
    (found,) = decoded(b"PUB a 1048577\r\n")
    assert isinstance(found, Malformed)
    assert (found.code, "1048576 bytes, got 1048577" in found.problem) == ("payload", True)
    assert decoded(b"PUB a 1048576\r\n") == []
    assert [frame for frame, _ in NatsCodec(max_payload=0).feed(b"PUB a 1048577\r\n")] == []


def test_a_size_is_mended() -> None:
    codec = NatsCodec()
    assert codec.mend(b"MSG a 1 99\r\nabc\r\n") == b"MSG a 1 3\r\nabc\r\n"
    assert codec.mend(b"PING\r\n") == b"PING\r\n"


def test_what_is_no_frame_is_not_written() -> None:
    with pytest.raises(WireError, match="expected a frame of NATS, got Frame"):
        NatsCodec().encode(Frame())


def test_the_judge_reads_beside_all_these_tests(beside: Beside, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the two say otherwise is noted, in what is read and in what is written."""
    assert decoded(b"PUB a 1\r\nx\r\n") == [Pub("a", b"x")]
    NatsCodec().encode(Pub("a", b"x"))
    assert beside.differences == []
    monkeypatch.setattr("fakebrokers.nats.codec._text", lambda word: word.decode() + "!")
    decoded(b"PUB a 1\r\nx\r\n")
    monkeypatch.setattr("fakebrokers.nats.codec._CRLF", b"\n")
    NatsCodec().encode(Sub("a", "1"))
    found = [each.partition(" ")[0] for each in beside.differences]
    beside.differences.clear()
    assert found == ["read", "written"]
