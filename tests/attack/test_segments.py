"""Hypothesis changes and cuts what real clients said: nothing goes wrong inside, and cuts change nothing."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.core.session import HangUp
from fakebrokers.protocol import find_protocol
from tests.attack.bench import Bench
from tests.attack.fuzz.recorded import Talk, mutated, talks_of

#: By wire whose bytes the fake reads itself: protocol and options. Each frame has an answer of its own.
FAKES: dict[str, tuple[str, dict[str, Any]]] = {
    "rabbitmq-stream": ("rabbitmq-stream", {}),
    "blazingmq": ("blazingmq", {}),
    "narconi-http": ("narconi", {}),
    "narconi-websocket": ("narconi", {}),
    **{
        name: ("moleculer", {"transporter": name, "profile": "0.14"})
        for name in ("nats", "redis", "mqtt", "tcp")
    },
}

#: What a NATS server calls itself is drawn each time.
NAMES = re.compile(rb'"server_(id|name)":"\w+"')


@cache
def talks(wire: str) -> list[Talk]:
    return talks_of(wire)


def heard(wire: str, segments: list[bytes]) -> tuple[bytes, HangUp | None]:
    """What a client hears from a fresh fake, in which nothing goes wrong."""
    protocol, options = FAKES[wire]
    bench = Bench(find_protocol(protocol), exact=True, seed=1, **options)
    client = bench.connect()
    for segment in segments:
        client.say(segment)
    bench.check()
    return NAMES.sub(b"", client.heard), client.ended


@st.composite
def said(draw: st.DrawFn, wire: str) -> tuple[list[bytes], bytes]:
    """An opening, mostly, and some pieces of the same conversation, every other one changed."""
    talk = draw(st.sampled_from(talks(wire)))
    numbered = st.tuples(st.sampled_from(talk.pieces), st.integers(-50, 50))
    pieces = draw(st.lists(numbered, min_size=1, max_size=6))
    changed = [piece if seed < 0 else mutated(piece, Random(seed)) for piece, seed in pieces]
    return list(talk.opening) if draw(st.integers(0, 3)) else [], b"".join(changed)


@pytest.mark.parametrize("wire", FAKES)
@given(data=st.data())
def test_changed_recordings_however_they_are_cut(wire: str, data: st.DataObject) -> None:
    opening, whole = data.draw(said(wire))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    pieces = [whole[begin:end] for begin, end in pairwise([0, *cuts, len(whole)]) if begin < end]
    if wire == "rabbitmq-stream" and not opening:
        pieces = [whole]  # it looks at what a segment holds before a connection is open
    assert heard(wire, [*opening, *pieces]) == heard(wire, [*opening, whole])
