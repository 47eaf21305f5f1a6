"""Bodies of clients that store AMQP 1.0 messages, as the sweep compares them."""

from __future__ import annotations

import pytest

from scenarios.rabbitmq_stream.sweep.records import plain_content, with_sections, wrapped


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


@pytest.mark.parametrize("body", [b"", b"m1", bytes(300)])
def test_sections_around_the_data_are_no_content(body: bytes) -> None:
    record = with_sections(body)
    assert record.startswith(b"\x00\x53\x70")
    assert plain_content(record) == body
    assert plain_content(record[:-1]) == record[:-1]


def test_several_data_sections_are_left_as_they_are() -> None:
    record = wrapped(b"one") + wrapped(b"two")
    assert plain_content(record) == record
