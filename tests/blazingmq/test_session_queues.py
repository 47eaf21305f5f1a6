"""Opening, configuring and closing queues, and every refusal (docs/protocols/blazingmq.md, 7 and 9)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fakebrokers.blazingmq.codes import Category
from fakebrokers.blazingmq.domains import Domain
from fakebrokers.blazingmq.frames import (
    CloseQueue,
    CloseQueueResponse,
    ConfigureQueueStream,
    ConfigureQueueStreamResponse,
    ConfigureStream,
    ConfigureStreamResponse,
    OpenQueue,
    OpenQueueResponse,
    StatusResponse,
)
from fakebrokers.blazingmq.schema import (
    HandleParameters,
    QueueStreamParameters,
    StreamParameters,
    SubQueueId,
)
from tests.blazingmq.bench import BROADCAST, CPP, FANOUT, JAVA, Bench, Q, parameters, subscription

REFUSED, UNKNOWN, INVALID = Category.E_REFUSED, Category.E_UNKNOWN, Category.E_INVALID_ARGUMENT


@pytest.mark.parametrize(("uri", "flags"), [(Q, 2), (FANOUT, 10), (BROADCAST, 7)])
@pytest.mark.parametrize("identity", [CPP, JAVA])
def test_the_answer_repeats_the_request_and_says_how_the_queue_delivers(
    uri: str, flags: int, identity: object
) -> None:
    client = Bench().start(identity)  # type: ignore[arg-type]
    asked = parameters(uri, 3, write=True)
    answer = client.ask(OpenQueue, asked)
    assert isinstance(answer, OpenQueueResponse)
    assert answer.original_request.handle_parameters == asked
    assert (answer.routing_configuration.flags, answer.deduplication_time_ms) == (flags, 300_000)


@pytest.mark.parametrize(
    ("asked", "category", "text"),
    [
        (parameters("bmq://nowhere/q", write=True), UNKNOWN, "nowhere.json' doesn't exist"),
        (parameters(), INVALID, "Count must be >0"),
        (replace(parameters(write=True), admin_count=1), INVALID, "adminCount must be 0"),
        (replace(parameters(write=True), flags=6), INVALID, "Read flag and readCount"),
        (replace(parameters(read=True), flags=6), INVALID, "Write flag and writeCount"),
        (replace(parameters(write=True), read_count=-1), INVALID, "Invalid handle parameters"),
        (replace(parameters(write=True), flags=5), INVALID, "Invalid handle parameters"),
        (parameters(q_id=2**32 - 10, write=True), INVALID, "reserved queue ids"),
        (parameters(FANOUT, write=True, app="foo", sub_id=1), INVALID, "AppId should not be specified in"),
        (parameters(FANOUT, read=True), UNKNOWN, "Reader of a fanout queue requires an appId"),
        (parameters(Q, read=True, app="foo", sub_id=1), UNKNOWN, "non-fanout queue"),
    ],
)
def test_what_may_not_be_opened(asked: HandleParameters, category: Category, text: str) -> None:
    client = Bench().start()
    found, message = client.refused(OpenQueue, asked)
    assert (found, text in message) == (category, True), message
    assert client.session.describe()["queues"] == {}


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("tcp://x/q", 'Invalid scheme: uri must start with "bmq://"'),
        ("bmq:///q", "Missing domain"),
        ("bmq://d", "Missing queue"),
        ("bmq://", "Missing domain"),
        ("bmq://a b/q", "Domain parsing failed: unsupported char (int)32"),
        ("bmq://dö/q", "Domain parsing failed: unsupported char (int)-61"),
        ("bmq://d.~/q", "Empty tier"),
        ("bmq://d.~x", "Missing queue"),
        ("bmq://d.~a.b/q", "Tier parsing failed: unsupported char (int)46"),
        ("bmq://d/", "Missing queue"),
        ("bmq://d/?id=a", "Missing queue"),
        ("bmq://d/a~b", "Path parsing failed: unsupported char (int)126"),
        ("bmq://d/q?", "Query parsing failed: no separator found"),
        ("bmq://d/q?id=", 'Query parsing failed: missing value after "="'),
        ("bmq://d/q?x=y", 'Query parsing failed: unsupported query "x"'),
        ("bmq://d/q?id=a&b", "Query parsing failed: unsupported char (int)38"),
        ("bmq://d/" + "q" * 65, "Queue name exceeds 64 characters"),
    ],
)
def test_what_is_no_name_of_a_queue(uri: str, text: str) -> None:
    answer = Bench().start().ask(OpenQueue, parameters(uri, write=True))
    assert answer == StatusResponse(1, REFUSED, 0, text)


def test_which_refusal_comes_first() -> None:
    """The name, the numbers, the domain, the broker, what the queue allows, the number of the queue."""
    domains = {"d": Domain(max_producers=1), "f": Domain("fanout", ("a",))}
    bench = Bench(domains=domains)
    bench.start().open("bmq://d/full", write=True)
    client = bench.start().open(Q, 0, write=True)
    nobody = parameters("bmq://d.~/q")
    bench.broker.nodes[0].stopping = True

    def refused(asked: HandleParameters) -> tuple[int, str]:
        category, text = client.refused(OpenQueue, asked)
        return category, text

    assert refused(nobody) == (REFUSED, "Empty tier")
    assert refused(replace(parameters("bmq://nowhere/q"), admin_count=1)) == (INVALID, "adminCount must be 0")
    assert refused(replace(parameters("bmq://nowhere/q", write=True), flags=5))[0] == UNKNOWN
    assert refused(replace(parameters("bmq://d/full", write=True), flags=5))[0] == REFUSED
    bench.broker.nodes[0].stopping = False
    assert refused(replace(parameters("bmq://d/full", write=True), flags=5))[1].startswith("Invalid handle")
    assert refused(parameters("bmq://d/full", write=True, read=True, app="x")) == (
        INVALID,
        "AppId should not be specified in the URI if queue is opened in write mode",
    )
    assert (
        refused(parameters("bmq://d/full", write=True))[1] == "Client would exceed the limit of 1 producer(s)"
    )
    assert refused(parameters("bmq://f/q", read=True))[1].startswith("Reader of a fanout queue")


def test_a_number_is_for_one_queue() -> None:
    client = Bench().start().open(write=True)
    category, text = client.refused(OpenQueue, parameters(FANOUT, write=True))
    assert (category, text) == (INVALID, "queueId is already in use for a different queue")
    assert not client.bench.broker.queue(FANOUT).handles
    assert client.post(b"x") and client.statuses() == [0]
    client.open(Q, read=True)
    client.open(Q, 1, write=True)


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"max_producers": 1}, "Client would exceed the limit of 1 producer(s)"),
        ({"max_consumers": 1}, "Client would exceed the limit of 1 consumer(s)"),
    ],
)
def test_limits_of_producers_and_consumers(limits: dict[str, int], text: str) -> None:
    bench = Bench(domains={"d": Domain(**limits)})  # type: ignore[arg-type]
    first, second = bench.start(), bench.start()
    asked = parameters("bmq://d/q", read=True, write=True)
    first.ask(OpenQueue, asked)
    assert second.refused(OpenQueue, asked) == (UNKNOWN, text)
    first.leave()
    assert isinstance(second.ask(OpenQueue, asked), OpenQueueResponse)


def test_consumers_of_a_fanout_are_counted_by_app() -> None:
    bench = Bench(domains={"d": Domain("fanout", ("a", "b"), max_consumers=1)})
    client = bench.start().open("bmq://d/q", read=True, app="a", sub_id=1)
    client.open("bmq://d/q", read=True, app="b", sub_id=2)
    assert (
        bench.start().refused(OpenQueue, parameters("bmq://d/q", read=True, app="a", sub_id=1))[0] == UNKNOWN
    )


def test_limit_of_queues() -> None:
    client = Bench(domains={"d": Domain(max_queues=1)}).start().open("bmq://d/one", write=True)
    assert client.refused(OpenQueue, parameters("bmq://d/two", 1, write=True))[0] == REFUSED
    client.open("bmq://d/one", 1, write=True)


def test_both_forms_of_configuration_are_answered_in_their_own_form() -> None:
    client = Bench().start().open(read=True, take=None)
    stream = StreamParameters("__default", (subscription(4),))
    answer = client.ask(ConfigureStream, 0, stream)
    assert isinstance(answer, ConfigureStreamResponse)
    assert (answer.request.q_id, answer.request.stream_parameters) == (0, stream)
    older = QueueStreamParameters(None, 10, 1000, 3, 1)
    older_answer = client.ask(ConfigureQueueStream, 0, older)
    assert isinstance(older_answer, ConfigureQueueStreamResponse)
    assert (older_answer.request.q_id, older_answer.request.stream_parameters) == (0, older)


def test_what_may_not_be_configured() -> None:
    client = Bench().start().open(read=True, take=None)
    stream = StreamParameters("__default", (subscription(),))
    assert client.refused(ConfigureStream, 7, stream) == (UNKNOWN, "No queue with specified Id")
    assert client.refused(ConfigureStream, 0, StreamParameters("x")) == (
        UNKNOWN,
        "No queue with specified appId",
    )
    for priority, turns in ((-(2**31), 1), (0, 0), (0, -1)):
        wrong = StreamParameters("__default", (subscription(priority=priority, turns=turns),))
        assert client.refused(ConfigureStream, 0, wrong) == (
            UNKNOWN,
            "Attempting to configure stream with invalid priority.",
        )
    client.close(read=True)
    assert client.refused(ConfigureStream, 0, stream) == (UNKNOWN, "No queue with specified Id")


def test_a_writer_may_configure_and_gets_nothing() -> None:
    client = Bench().start().open(write=True)
    assert isinstance(client.configure(), ConfigureStreamResponse)
    client.post(b"x")
    assert client.statuses() == [0]


def test_what_may_not_be_closed() -> None:
    client = Bench().start().open(write=True)
    asked = parameters(write=True)
    assert client.refused(CloseQueue, parameters(), True)[0] == INVALID
    assert client.refused(CloseQueue, replace(asked, q_id=7), True) == (UNKNOWN, "No queue with specified Id")
    stream = replace(asked, sub_id_info=SubQueueId(4, "__default"))
    assert client.refused(CloseQueue, stream, True) == (
        UNKNOWN,
        "No subStream of the queue with specified subId",
    )
    for wrong in (replace(asked, read_count=1), replace(asked, write_count=2)):
        assert client.refused(CloseQueue, wrong, False) == (UNKNOWN, "Failed to release handle.")
    assert isinstance(client.ask(CloseQueue, asked, True), CloseQueueResponse)
    assert client.refused(CloseQueue, asked, True) == (UNKNOWN, "No queue with specified Id")


def test_a_close_goes_by_the_number_whatever_name_it_has() -> None:
    client = Bench().start().open(write=True)
    assert isinstance(client.ask(CloseQueue, parameters(FANOUT, write=True), True), CloseQueueResponse)
    assert client.session.describe()["queues"] == {}


def test_a_final_close_gives_up_all_that_is_left() -> None:
    client = Bench().start().open(read=True, write=True)
    answer = client.ask(CloseQueue, replace(parameters(read=True, write=True), read_count=5), True)
    assert isinstance(answer, CloseQueueResponse)
    assert client.session.describe()["queues"] == {}


def test_handles_are_counted() -> None:
    bench = Bench()
    client = bench.start()
    for _ in range(2):
        client.open(read=True, write=True)
    queue = bench.broker.queue(Q)
    (handle,) = queue.handles
    assert (handle.reads, handle.writes) == (2, 2)
    client.close(read=True, write=True, final=False)
    assert (handle.reads, handle.writes) == (1, 1)
    client.close(read=True, final=False)
    client.post(b"x")
    assert client.statuses() == [0]
    client.close(write=True, final=False)
    assert not queue.handles
    assert client.session.describe()["queues"] == {}


def test_streams_of_one_handle_are_closed_one_by_one() -> None:
    client = Bench().start().open(FANOUT, write=True)
    for sub_id, app in ((1, "foo"), (2, "bar")):
        client.open(FANOUT, read=True, app=app, sub_id=sub_id)
    client.close(FANOUT, read=True, app="foo", sub_id=1, final=False)
    client.post(b"x")
    assert client.payloads() == [b"x"]
    client.close(FANOUT, write=True, final=False)
    client.close(FANOUT, read=True, app="bar", sub_id=2, final=True)
    assert client.session.describe()["queues"] == {}


def test_large_numbers_are_negative_in_events() -> None:
    client = Bench().start().open(Q, 2**32 - 11, read=True, write=True)
    posted = client.post(b"x", -11)
    ack, push = client.frames()
    assert (ack.messages[0].queue_id, push.messages[0].queue_id) == (-11, -11)  # type: ignore[attr-defined]
    client.confirm(posted, q_id=-11)
    assert not client.bench.broker.queue(Q).messages


def test_queues_differ_by_tier() -> None:
    bench = Bench()
    client = bench.start().open("bmq://bmq.test.mem.priority.~eu/q", write=True).open(Q, 1, write=True)
    client.post(b"x")
    assert len(bench.broker.queue("bmq://bmq.test.mem.priority.~eu/q").messages) == 1
    assert len(bench.broker.queue(Q).messages) == 0
