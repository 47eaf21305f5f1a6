"""Old names go on working, with a warning that says the new one at the line that uses the old."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from fakebrokers import PZQ, BlazingMQ, Narconi, RabbitMQStream
from fakebrokers.control.brokers import operations_of
from fakebrokers.options import in_seconds
from fakebrokers.protocol import find_protocol
from tests.toy import Toy

QUEUE = "bmq://bmq.test.mem.priority/orders"


def rabbitmq() -> Any:
    with RabbitMQStream() as broker:
        broker.create_stream("o")
        return broker.stream_names


def blazingmq() -> Any:
    with BlazingMQ() as broker:
        broker.post(QUEUE, b"tea", properties=None)
        return [message.content.payload for message in broker.messages(QUEUE)]


def narconi() -> Any:
    with Narconi() as broker:
        broker.ensure("gold", "o")
        broker.put("gold", "o", payload=b"tea")
        found = [message.payload for message in broker.messages("gold", "o")]
        broker.delete("gold", "o")
        return found, broker.queues


def pzq() -> Any:
    with PZQ() as broker:
        broker.put(b"tea", key=b"k")
        first, rest = broker.messages[0], broker.messages[1:]
        assert [*broker.messages] == [first] == broker.messages() and len(broker.messages) == 1
        assert broker.messages == [first]
        return first.body, rest, bool(broker.messages)


@pytest.mark.parametrize(
    ("use", "result", "words"),
    [
        (rabbitmq, ["o"], ["RabbitMQStream.stream_names is an old name: use RabbitMQStream.streams"]),
        (blazingmq, [b"tea"], ["BlazingMQ.post is an old name: use BlazingMQ.publish"]),
        (
            narconi,
            ([b"tea"], []),
            [
                "Narconi.ensure is an old name: use Narconi.create_queue",
                "Narconi.put is an old name: use Narconi.publish",
                "Narconi.delete is an old name: use Narconi.delete_queue",
            ],
        ),
        (
            pzq,
            ((b"tea",), [], True),
            ["PZQ.put is an old name: use PZQ.publish"]
            + 7 * ["PZQ.messages is an old name: use PZQ.messages()"],
        ),
    ],
)
def test_methods(use: Callable[[], Any], result: Any, words: list[str]) -> None:
    with pytest.warns(DeprecationWarning) as warned:
        assert use() == result
    assert [str(each.message) for each in warned] == words
    assert {each.filename for each in warned} == {__file__}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: PZQ(ack_timeout=100_000),
            r"PZQ\(ack_timeout=\.\.\.\) is .* use ack_timeout_s=0\.1$",
        ),
        (
            lambda: PZQ(reaper_frequency=0),
            r"reaper_frequency=\.\.\.\) is .* use reaper_interval_s=0\.0$",
        ),
        (
            lambda: BlazingMQ(heartbeat_ms=3000),
            r"heartbeat_ms=\.\.\.\) is .* use heartbeat_s=3\.0$",
        ),
    ],
)
def test_keywords(make: Callable[[], Any], message: str) -> None:
    with pytest.warns(DeprecationWarning, match=message) as warned:
        make()
    assert warned[0].filename == __file__


@pytest.mark.fakebrokers("pzq", ack_timeout=100_000)
@pytest.mark.filterwarnings("ignore:PZQ.ack_timeout:DeprecationWarning")
def test_in_a_marker(pzq: PZQ) -> None:
    assert pzq._options.ack_timeout == 100_000


def test_units_are_seconds() -> None:
    old = {"ack_timeout": 100_000, "reaper_frequency": None}
    assert in_seconds(old, PZQ) == {"ack_timeout_s": 0.1, "reaper_interval_s": None}
    assert PZQ(**in_seconds(old, PZQ))._options == PZQ(ack_timeout_s=0.1)._options
    assert PZQ()._options.ack_timeout == 5_000_000
    assert BlazingMQ(heartbeat_s=0.25).switches.heartbeat_interval_ms == 250


@pytest.mark.parametrize(
    ("protocol", "old", "new"),
    [
        ("rabbitmq-stream", "stream_names", "streams"),
        ("blazingmq", "post", "publish"),
        ("narconi", "put", "publish"),
        ("narconi", "ensure", "create_queue"),
        ("narconi", "delete", "delete_queue"),
        ("pzq", "put", "publish"),
        ("moleculer", "accept", "restart"),
    ],
)
def test_over_http_both_names_do_the_same(protocol: str, old: str, new: str) -> None:
    operations = operations_of(find_protocol(protocol))
    assert operations[old].arguments is operations[new].arguments
    assert operations[old].about.startswith(f"Old name of `{new}`.")
    with find_protocol(protocol).load()() as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        values = {"payload": b"tea", "body": [b"tea"], "uri": QUEUE, "project": "gold", "queue": "o"}
        if old == "delete":
            operations["ensure"].carry_out(server, operations["ensure"].arguments(project="gold", queue="o"))
        arguments = operations[old].arguments
        given = {name: values[name] for name in arguments.__struct_fields__ if name in values}
        operations[old].carry_out(server, arguments(**given))


@pytest.mark.parametrize(
    ("protocol", "options", "keywords"),
    [
        ("pzq", {"ack_timeout": 100_000}, {"ack_timeout_s": 0.1}),
        ("blazingmq", {"heartbeat_ms": 3000}, {"heartbeat_s": 3.0}),
        ("blazingmq", {"heartbeat_s": 3.0}, {"heartbeat_s": 3.0}),
    ],
)
def test_over_http_old_options_stay(protocol: str, options: Any, keywords: Any) -> None:
    assert find_protocol(protocol).load_control().options(**options).keywords() == keywords


def test_hooks_can_be_used_under_their_old_names() -> None:
    toy = Toy()
    with pytest.warns(DeprecationWarning, match=r"^Toy\.endpoints is an old name: use _endpoints$") as warned:
        assert toy.endpoints() == toy._endpoints()
    assert warned[0].filename == __file__
    with pytest.warns(DeprecationWarning, match=r"^Toy\.watcher is an old name: use _watcher$"):
        toy.watcher = None
    with pytest.warns(DeprecationWarning, match="options_from_environ is an old name"):
        assert toy.options_from_environ({}) == {}


def test_looking_through_a_class_warns_of_nothing() -> None:
    assert "call" in dict(inspect.getmembers(Toy, inspect.isfunction))


def test_hooks_can_be_overridden_under_their_old_names() -> None:
    heard = []
    with pytest.warns(DeprecationWarning) as warned:

        class Older(Toy):
            def started(self) -> None:
                heard.append("started")

            @property
            def companions(self) -> dict[str, Any]:
                return {"other": self}

    assert {str(each.message) for each in warned} == {
        "Older.started is an old name: use _started",
        "Older.companions is an old name: use _companions",
    }
    assert {each.filename for each in warned} == {__file__}
    with Older() as older:
        assert heard == ["started"]
        assert older._companions == {"other": older}
