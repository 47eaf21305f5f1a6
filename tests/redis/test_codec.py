"""RESP on the wire: every frame, and bytes that nobody should send."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.core.frames import Frame
from fakebrokers.errors import WireError
from fakebrokers.redis import frames as f
from fakebrokers.redis.codec import RedisCodec, Side
from fakebrokers.redis.resp import Garbage, raw
from fakebrokers.redis.words import Glob, split_words

NAME = st.text(st.characters(exclude_categories=["C"]), max_size=20)
BODY = st.binary(max_size=100)
NAMES = st.lists(NAME, min_size=1, max_size=3).map(tuple)
SAID = st.one_of(
    st.builds(f.Publish, NAME, BODY),
    st.builds(f.Spublish, NAME, BODY),
    st.builds(f.Ssubscribe, NAMES),
    st.builds(f.Sunsubscribe, NAMES | st.just(())),
    st.builds(f.Subscribe, NAMES),
    st.builds(f.Psubscribe, NAMES),
    st.builds(f.Unsubscribe, NAMES | st.just(())),
    st.builds(f.Punsubscribe, NAMES | st.just(())),
    st.builds(f.Auth, st.lists(BODY, max_size=2).map(tuple)),
    st.builds(f.Hello, st.sampled_from(["2", "3"]), st.lists(BODY, max_size=2).map(tuple)),
    st.builds(f.Command, st.sampled_from(["PING", "foo"]), st.lists(BODY, max_size=2).map(tuple)),
)
VALUES = st.recursive(
    st.none() | BODY | st.integers(-9, 9) | st.just("OK"),
    lambda inner: st.lists(inner, max_size=2).map(tuple),
)
HEARD = st.one_of(
    st.builds(f.Message, NAME, BODY),
    st.builds(f.Smessage, NAME, BODY),
    st.builds(f.Pmessage, NAME, NAME, BODY),
    st.builds(
        f.Subscribed, st.sampled_from(["subscribe", "punsubscribe"]), NAME | st.none(), st.integers(0, 9)
    ),
    st.builds(f.RedisError, st.just("ERR no")),
    st.builds(f.Reply, VALUES),
)


@pytest.mark.parametrize("resp3", [False, True])
@pytest.mark.parametrize(("side", "frames"), [("server", SAID), ("client", HEARD)])
def test_every_frame_comes_back_however_it_is_cut(
    side: Side, frames: st.SearchStrategy[Frame], resp3: bool
) -> None:
    @given(st.lists(frames, max_size=4), st.data())
    def check(said: list[Frame], data: st.DataObject) -> None:
        whole = b"".join(map(RedisCodec(resp3=resp3).encode, said))
        cut = data.draw(st.integers(0, len(whole)))
        codec = RedisCodec(side)
        found = [*codec.feed(whole[:cut]), *codec.feed(whole[cut:])]
        assert [frame for frame, _ in found] == said
        assert sum(size for _, size in found) == len(whole)
        assert codec.partial == 0

    check()


def test_all_frames_are_tried() -> None:
    tried = {f.Publish, f.Subscribe, f.Psubscribe, f.Unsubscribe, f.Punsubscribe, f.Auth, f.Hello, f.Command}
    tried |= {f.Blank, f.Spublish, f.Ssubscribe, f.Sunsubscribe, f.Smessage}
    tried |= {f.Message, f.Pmessage, f.Subscribed, f.RedisError, f.Reply, f.Published}
    assert {kind for kind in f.FRAMES if kind.__module__ == f.__name__} == tried


SNIPPETS = [b"*3\r\n", b"$7\r\n", b"PUBLISH\r\n", b"*-1\r\n", b"$-1\r\n", b'"', b"\r\n", b"%2\r\n", b">1\r\n"]


@given(st.lists(st.binary(max_size=40) | st.sampled_from(SNIPPETS), max_size=8))
def test_no_bytes_make_it_fail(segments: list[bytes]) -> None:
    for side in ("server", "client"):
        codec = RedisCodec(side)  # type: ignore[arg-type]
        for segment in segments:
            for frame, _ in codec.feed(segment):
                assert isinstance(frame, Frame)


@pytest.mark.parametrize(
    ("pattern", "fits", "fails"),
    [
        ("h?llo", ["hello", "hallo"], ["hllo", "heello"]),
        ("h*o", ["ho", "hello"], ["hell"]),
        ("h[ae]llo", ["hello"], ["hillo"]),
        ("h[^e]llo", ["hallo"], ["hello"]),
        ("h[a-c]llo", ["hbllo"], ["hdllo"]),
        (r"h\*o", ["h*o"], ["hello"]),
        ("a[b", ["ab"], ["a[b"]),
        ("a[]b", [], ["ab"]),
        ("a.b", ["a.b"], ["axb"]),
    ],
)
def test_patterns(pattern: str, fits: list[str], fails: list[str]) -> None:
    assert [name for name in (*fits, *fails) if Glob(raw(pattern)).fits(raw(name))] == fits


@given(st.text(max_size=12), st.text(max_size=24))
def test_every_pattern_is_one(pattern: str, name: str) -> None:
    Glob(raw(pattern)).fits(raw(name))


@given(st.text("ab*?", max_size=10), st.text("ab", max_size=10))
def test_stars_are_tried_in_all_ways_that_matter(pattern: str, name: str) -> None:
    slow = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    assert Glob(raw(pattern)).fits(raw(name)) == bool(re.fullmatch(slow, name))


def test_a_pattern_of_many_stars_does_not_take_for_ever() -> None:
    begun = time.process_time()
    assert not Glob(b"*a" * 20 + b"*b").fits(b"a" * 2000)
    assert time.process_time() - begun < 0.1


@pytest.mark.parametrize(
    ("pattern", "fits", "fails"),
    [
        (b"a*" * 500_000, [], b"a" * 1000),
        (b"*a" * 500_000 + b"b", [], b"a" * 1000),
        (b"[" + b"a" * 999_998 + b"]", [b"a"], b"b"),
        (b"[" * 1_000_000, [b"["], b"a"),
        (b"*" * 1_000_000, [b"", b"a" * 1_000_000], None),
        (b"?" * 1000 + b"*" * 999_000, [b"a" * 1000], b"a" * 999),
        (b"\\a" * 500_000, [], b"a" * 1000),
    ],
    ids=["a*", "*a", "[a]", "[", "*", "?*", "escapes"],
)
def test_a_pattern_of_a_megabyte_takes_no_longer_than_reading_it(
    pattern: bytes, fits: list[bytes], fails: bytes | None
) -> None:
    """The real server (7.0) takes all of them, and answers as at once."""
    begun = time.process_time()
    glob = Glob(pattern)
    assert all(glob.fits(name) for name in fits)
    assert fails is None or not any(glob.fits(fails) for _ in range(100))
    assert time.process_time() - begun < 1


def test_a_name_and_a_pattern_that_are_both_long_do_not_fit_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    glob = Glob(b"a?" * 500_000)
    begun = time.process_time()
    assert not any(glob.fits(b"aa" * 500_000) for _ in range(100))
    assert time.process_time() - begun < 0.5
    (record,) = caplog.records
    assert "a pattern of 1000000 parts fits no name of 1000000 bytes here" in record.getMessage()


def test_lines_of_words() -> None:
    assert split_words(rb"""  SET "a\x41\n"  'it\'s\n' x"y z" """) == [b"SET", b"aA\n", rb"it's\n", b"xy z"]
    assert split_words(b" ") == []


@pytest.mark.parametrize("line", [b'SET "a', b'ECHO x"y', b'ECHO "x"y', b"ECHO 'x"])
def test_quotes_end_with_the_word(line: bytes) -> None:
    with pytest.raises(Garbage, match="unbalanced quotes"):
        split_words(line)


def test_what_a_server_answers_is_no_command() -> None:
    answer = f.Reply((b"publish", b"a", b"x"))
    [(frame, _)] = RedisCodec("client").feed(RedisCodec().encode(answer))
    assert frame == answer


def test_what_is_no_frame_is_not_written() -> None:
    with pytest.raises(WireError, match="expected a frame of Redis, got Frame"):
        RedisCodec().encode(Frame())
