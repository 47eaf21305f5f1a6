"""Bodies of clients that store AMQP 1.0 messages, as the sweep compares them."""

from __future__ import annotations

import pytest

from scenarios.rabbitmq_stream.sweep.records import plain_content, wrapped


@pytest.mark.parametrize("size", [0, 1, 255, 256, 70_000])
def test_a_body_comes_back(size: int) -> None:
    body = b"x" * size
    assert plain_content(wrapped(body)) == body
    assert wrapped(body) != body


@pytest.mark.parametrize(
    "record", [b"", b"m0", b"\x00Su", b"\x00Su\xa0\x05four", b"\x00Su\xa0\x02ab and more"]
)
def test_what_is_no_such_message_stays_as_it_is(record: bytes) -> None:
    assert plain_content(record) == record
