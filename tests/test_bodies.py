"""What tests store is bytes or text, as over HTTP; anything else is refused with a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fakebrokers import PZQ, BlazingMQ, Narconi, RabbitMQStream
from fakebrokers.errors import PlanError, UsageError
from fakebrokers.faults import Plan, drop

QUEUE = "bmq://bmq.test.mem.priority/orders"


def stored_in_stream(*given: Any) -> list[bytes]:
    with RabbitMQStream() as broker:
        broker.create_stream("o")
        broker.publish("o", *given)
        return [message.body for message in broker.messages("o")]


def stored_in_pzq(*given: Any) -> list[bytes]:
    with PZQ() as pzq:
        pzq.publish(*given)
        (message,) = pzq.messages()
        return list(message.body)


def stored_in_narconi(*given: Any) -> list[bytes]:
    with Narconi() as narconi:
        narconi.publish("gold", "o", *given)
        return [message.payload for message in narconi.messages("gold", "o")]


def stored_in_blazingmq(*given: Any) -> list[bytes]:
    with BlazingMQ() as broker:
        broker.publish(QUEUE, *given)
        return [message.content.payload for message in broker.messages(QUEUE)]


@pytest.mark.parametrize("stored", [stored_in_stream, stored_in_pzq, stored_in_narconi, stored_in_blazingmq])
def test_bytes_and_text(stored: Callable[..., list[bytes]]) -> None:
    assert (
        stored(b"tea") == stored("tea") == stored(bytearray(b"tea")) == stored(memoryview(b"tea")) == [b"tea"]
    )
    assert stored("é") == ["é".encode()]
    with pytest.raises(UsageError, match=r"expected a body as bytes or text, got 5"):
        stored(5)
    with pytest.raises(UsageError, match=r"expected a body as bytes or text, got \{'tea': 1\}"):
        stored({"tea": 1})


def test_several() -> None:
    several: list[Any] = ["tea", b"milk"]
    assert stored_in_stream(several) == stored_in_pzq(*several) == [b"tea", b"milk"]

    def made() -> Iterator[bytes]:
        yield b"tea"

    assert stored_in_stream(made()) == [b"tea"]
    with pytest.raises(UsageError, match=r"expected a body as bytes or text, got None"):
        stored_in_stream([b"tea", None])


def test_pzq_keys() -> None:
    with PZQ() as pzq:
        assert pzq.publish("tea", key="k") == b"k"


def test_faults_as_tables() -> None:
    with RabbitMQStream() as broker:
        add = broker.faults.add
        assert add({"name": "a", "match": {"role": "confirm"}, "effect": {"type": "drop"}}) == "a"
        assert add({"effect": {"type": "move-leader", "stream": "o"}, "match": {"role": "publish", "nth": 3}})
        assert add(drop(), {"name": "b", "effect": {"type": "drop"}}) == "b"
        broker.faults.load(
            {"faults": [{"effect": {"type": "move-leader", "stream": "o"}, "match": {"nth": 3}}]}
        )
        for wrong, message in (
            ({"match": {}, "effect": {"type": "dorp"}}, r"effect\.type: .*did you mean 'drop'\?"),
            ({"effekt": {"type": "drop"}}, r"effekt: expected one of .*did you mean 'effect'"),
            (
                Plan(faults=(drop(),)),
                r"a fault such as drop\(\), or its table; a plan is for load\(\)",
            ),
            ([drop()], r"a fault such as drop\(\), or its table; several are given one by one"),
            ("drop", r"a fault such as drop\(\), or its table; got 'drop'"),
        ):
            names = broker.faults.names
            with pytest.raises(PlanError, match=message):
                add(wrong)  # type: ignore[arg-type]
            assert broker.faults.names == names
