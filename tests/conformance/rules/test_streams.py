"""Streams as the rules compare them: by their bytes, or by a digest where they are long."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.clients.adapter.kit.bodies import report_body
from conformance.rules.streams import _is_reported
from conformance.run.facts import Flow
from conformance.run.trace import START
from scenarios.moleculer.traits import TRAITS

LONG = b"0123456789" * 500


class _Result:
    ok = True

    def __init__(self, data: Any) -> None:
        self.value = {"data": data}


def came(*pieces: bytes, doubled: bool = False) -> Flow:
    return Flow("out", None, START, pieces=dict(enumerate(pieces, 1)), is_doubled=doubled)


@pytest.mark.parametrize("whole", [b"short", LONG], ids=["bytes", "digest"])
def test_a_stream_is_compared_with_its_pieces(whole: bytes) -> None:
    _, got = TRAITS.peers.streamed({}, _Result({"stream": report_body(whole), "chunks": 2}))
    assert _is_reported(got, came(whole[:3], whole[3:]))
    assert not _is_reported(got, came(whole[3:], whole[:3]))
    assert not _is_reported(got, came(whole[:3]))


def test_objects_are_compared_as_they_are_written() -> None:
    _, got = TRAITS.peers.streamed({}, _Result({"objects": [{"a": 1}, "é"]}))
    assert _is_reported(got, came(b'{"a": 1}', b'"\\u00e9"'))
    assert not _is_reported(got, came(b'{"a": 1}'))


def test_a_piece_that_came_twice_may_be_there_twice() -> None:
    _, got = TRAITS.peers.streamed({}, _Result({"stream": report_body(b"aab")}))
    assert _is_reported(got, came(b"a", b"b", doubled=True))
    assert not _is_reported(got, came(b"a", b"b"))


@pytest.mark.parametrize("data", [None, "text", {"stream": 5}, {"other": 1}])
def test_what_is_no_stream_is_none(data: Any) -> None:
    assert TRAITS.peers.streamed({}, _Result(data)) == (None, None)
    assert not _is_reported(None, came(b"a", doubled=True))
