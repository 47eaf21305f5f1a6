"""The hash of keys is the published one: other clients of a super stream choose the same partitions."""

from __future__ import annotations

import pytest

from conformance.clients.reference.rabbitmq_stream.murmur3 import SEED, murmur3

FOX = b"The quick brown fox jumps over the lazy dog"


@pytest.mark.parametrize(
    ("data", "seed", "wanted"),
    [
        (b"", 0, 0),
        (b"", 1, 0x514E28B7),
        (b"\0\0\0\0", 0, 0x2362F9DE),
        (b"test", 0, 0xBA6BD213),
        (b"Hello, world!", 0, 0xC0363E43),
        (FOX, 0, 0x2E4FF723),
        (b"a", SEED, 0x40C5855A),
        ("ключ".encode(), SEED, 0x218303C5),
    ],
)
def test_vectors_of_other_implementations(data: bytes, seed: int, wanted: int) -> None:
    assert murmur3(data, seed) == wanted
