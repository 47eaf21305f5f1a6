from __future__ import annotations

import math

import pytest

from fakebrokers.errors import UsageError
from fakebrokers.rabbitmq_stream.access import Permission, User
from fakebrokers.rabbitmq_stream.chunking import PerMessage
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.policies import Policy
from fakebrokers.rabbitmq_stream.profile import PROFILES, V3_10, V4_3
from fakebrokers.rabbitmq_stream.refusals import Crashed, Refused
from fakebrokers.rabbitmq_stream.server import RabbitMQStream
from tests.rabbitmq_stream.brokers import Watching, create, create_super, new_broker, refusal
from tests.rabbitmq_stream.writing import Writing, reading

# --- creating and deleting --------------------------------------------------------------------


def test_a_stream_is_created_once() -> None:
    broker = new_broker()
    stream = create(broker, max_age="1h")
    assert broker.find("/", "s") is stream
    for arguments, code in (({"max-age": "1h"}, 5), ({}, 17), ({"max-age": "60m"}, 17)):
        assert refusal(broker.create, "/", "s", arguments, broker.cluster.nodes[0]) == code


@pytest.mark.parametrize(
    "arguments",
    [
        {"queue_leader_locator": "nope"},
        {"initial_cluster_size": "0"},
        {"initial_cluster_size": "-1"},
        {"stream_filter_size_bytes": "15"},
        {"stream_filter_size_bytes": "256"},
    ],
)
def test_arguments_that_are_refused(arguments: dict[str, str]) -> None:
    broker = new_broker()
    with pytest.raises(Refused) as caught:
        create(broker, **arguments)
    assert caught.value.code == Code.PRECONDITION_FAILED
    assert broker.streams == {}


@pytest.mark.parametrize(
    "arguments",
    [
        {"max_age": "1 fortnight"},
        {"max_length_bytes": "-5"},
        {"foo": "bar"},
        {"stream_filter_size_bytes": "16"},
        {"stream_filter_size_bytes": "255"},
        {"initial_cluster_size": "9"},
        *[{"queue_leader_locator": name} for name in ("client-local", "balanced", "random", "least-leaders")],
    ],
)
def test_arguments_that_are_taken(arguments: dict[str, str]) -> None:
    assert create(new_broker(), **arguments).name == "s"


@pytest.mark.parametrize("key", ["max_length_bytes", "stream_max_segment_size_bytes", "initial_cluster_size"])
@pytest.mark.parametrize("value", ["abc", "", "1.5", "\u0663"])
def test_a_number_that_is_none_crashes_the_connection(key: str, value: str) -> None:
    with pytest.raises(Crashed):
        create(new_broker(), **{key: value})


def test_the_filter_size_is_unknown_to_old_servers() -> None:
    assert create(new_broker(profile=V3_10), stream_filter_size_bytes="3").arguments.filter_size == 16


@pytest.mark.parametrize(
    ("age", "seconds"), [("7D", 604800), ("2h", 7200), ("1Y", 31536000), ("90s", 90), ("x", None)]
)
def test_ages(age: str, seconds: int | None) -> None:
    assert create(new_broker(), max_age=age).arguments.max_age_s == seconds


@pytest.mark.parametrize("name", ["", "\r\n", "amq.x"])
def test_names_that_are_refused(name: str) -> None:
    assert refusal(create, new_broker(), name) == Code.PRECONDITION_FAILED


def test_line_breaks_are_taken_out_of_names() -> None:
    broker = new_broker()
    assert create(broker, "a\r\nb").name == "ab"
    assert refusal(broker.find, "/", "a\r\nb") == Code.STREAM_DOES_NOT_EXIST


def test_virtual_hosts_are_apart() -> None:
    broker = new_broker()
    create(broker)
    broker.create("other", "s", {"max-age": "1h"}, broker.cluster.nodes[0])
    broker.remove("/", "s")
    assert list(broker.streams) == [("other", "s")]


def test_deleting_what_is_not_there() -> None:
    assert refusal(new_broker().remove, "/", "s") == Code.STREAM_DOES_NOT_EXIST


def test_watchers_are_told_once_and_after_the_answer() -> None:
    broker = new_broker()
    watching = Watching(create(broker))
    stream = broker.remove("/", "s")
    assert watching.lost == []
    broker.announce([stream], 1.0)
    broker.announce([stream], 2.0)
    assert watching.lost == [("s", 1.0)]


# --- super streams ----------------------------------------------------------------------------


def test_partitions_are_in_order_and_routed_by_key() -> None:
    broker = new_broker()
    create_super(broker, "c", "a", "b", keys=("x", "y", "x"))
    super_stream = broker.find_super_stream("/", "super")
    assert super_stream.partitions == ["c", "a", "b"]
    assert super_stream.route("x") == ["c", "b"]
    assert super_stream.route("X") == []
    assert [broker.partition_index("/", "super", name) for name in "abcd"] == [1, 2, 0, None]
    assert broker.partition_index("/", "nosuch", "a") is None


@pytest.mark.parametrize(
    ("partitions", "keys"),
    [(("a", "b"), ("1",)), (("a", "a"), ("1", "2")), (("amq.x",), ("1",)), (("",), ("1",))],
)
def test_super_streams_that_are_refused(partitions: tuple[str, ...], keys: tuple[str, ...]) -> None:
    broker = new_broker()
    node = broker.cluster.nodes[0]
    assert refusal(broker.create_super_stream, "/", "super", partitions, keys, {}, node) == 17
    assert broker.streams == {}


def test_a_super_stream_or_a_partition_that_exists() -> None:
    broker = new_broker()
    create_super(broker, "a")
    assert refusal(create_super, broker, "x") == Code.STREAM_ALREADY_EXISTS
    create(broker, "b")
    node = broker.cluster.nodes[0]
    assert refusal(broker.create_super_stream, "/", "other", ("x", "b"), ("1", "2"), {}, node) == 5
    assert ("/", "x") not in broker.streams


def test_deleting_a_super_stream_deletes_its_partitions() -> None:
    broker = new_broker()
    create_super(broker, "a", "b")
    assert [stream.name for stream in broker.remove_super_stream("/", "super")] == ["a", "b"]
    assert (broker.streams, broker.super_streams) == ({}, {})
    assert refusal(broker.remove_super_stream, "/", "super") == Code.STREAM_DOES_NOT_EXIST


def test_a_partition_that_was_deleted_alone_is_not_listed_any_more() -> None:
    broker = new_broker()
    create_super(broker, "a", "b")
    broker.delete("a", 0.0)
    assert broker.find_super_stream("/", "super").partitions == ["b"]
    assert [stream.name for stream in broker.remove_super_stream("/", "super")] == ["b"]


def test_a_partition_of_that_name_in_another_virtual_host_stays_listed() -> None:
    broker = new_broker()
    node = broker.cluster.nodes[0]
    create_super(broker, "a", "b")
    broker.create_super_stream("other", "super", ("a", "b"), ("0", "1"), {}, node)
    broker.remove("other", "a")
    assert broker.find_super_stream("/", "super").partitions == ["a", "b"]
    assert broker.find_super_stream("other", "super").partitions == ["b"]


# --- life -------------------------------------------------------------------------------------


def test_tracking_is_written_by_the_timer() -> None:
    broker = new_broker()
    stream = create(broker)
    create(broker, "other")
    assert broker.timers.next_due == math.inf
    stream.writer.store_offset("app", 1, 3.0)
    assert broker.timers.next_due == 3.0
    broker.timers.run(3.0)
    assert broker.timers.next_due == math.inf
    assert stream.log.next_offset == 1


def test_a_restart_keeps_the_disk_and_raises_the_epoch() -> None:
    broker = new_broker()
    stream = create(broker)
    watching = Watching(stream)
    broker.publish("s", [b"x"], 0.0)
    stream.hold_commits()
    broker.publish("s", [b"y"], 0.0)
    stream.writer.store_offset("app", 1, 0.0)
    broker.restarted(1.0)
    assert watching.lost == []
    assert (stream.epoch, stream.committed_offset, broker.timers.next_due) == (2, 2, math.inf)
    assert [message.body for message in stream.messages()] == [b"x", b"y"]


def test_a_restart_abandons_the_old_users_of_a_stream() -> None:
    broker = new_broker()
    stream = create(broker)
    watching, writing, reader = Watching(stream), Writing(stream), reading(stream)
    stream.publishers.append(writing.publisher)
    stream.subscriptions.append(reader)
    stream.hold_commits()
    writing.publish(1)
    broker.restarted(1.0)
    assert (stream.publishers, stream.subscriptions) == ([], [])
    stream.release_commits(2.0)
    assert writing.confirms == []  # what was not confirmed before the crash never is
    broker.delete("s", 3.0)
    assert watching.lost == []


def test_a_reset_forgets_streams_but_not_users_and_nodes() -> None:
    broker = new_broker(nodes=2)
    broker.access.add_user(User("app", "x"))
    create_super(broker, "a")
    broker.reset()
    assert (broker.streams, broker.super_streams) == ({}, {})
    assert "app" in broker.access.users
    assert len(broker.cluster.nodes) == 2


def test_with_a_virtual_host_go_its_streams_policies_and_rights() -> None:
    broker = new_broker()
    broker.access.virtual_hosts["test"] = None
    user = broker.access.add_user(User("app", "x", permissions={"/": Permission(), "test": Permission()}))
    for host in ("/", "test"):
        broker.policies.put(Policy(host, "short", "^s", {"max-age": "1h"}))
        broker.create(host, "s", {}, broker.cluster.nodes[0])
    assert broker.delete_virtual_host("test", 1.0)
    assert list(broker.streams) == [("/", "s")]
    assert [policy.virtual_host for policy in broker.policies] == ["/"]
    assert list(user.permissions) == ["/"]
    assert not broker.delete_virtual_host("test", 2.0)


def test_the_tests_side_names_what_is_there() -> None:
    broker = new_broker(new_chunking=PerMessage)
    create(broker)
    broker.publish("s", [b"x", b"y"], 0.0)
    assert len(broker.stream("s").log) == 2
    with pytest.raises(UsageError, match=r"no stream 'nope' in '/'; there are: s"):
        broker.publish("nope", [b"x"], 0.0)


def test_profiles_have_names() -> None:
    assert PROFILES["real"] is PROFILES["4.3"] is V4_3
    assert [PROFILES[name].name for name in ("4.3", "4.0", "3.10", "seed")] == [
        "4.3",
        "4.0",
        "3.10",
        "seed",
    ]
    with pytest.raises(UsageError, match=r"'9.9'. Choose from: real, 4.3"):
        RabbitMQStream(profile="9.9")


def test_delays_are_off_unless_asked_for() -> None:
    assert (V4_3.failure_delay_s, V4_3.with_delays().failure_delay_s) == (0.0, 3.0)
    assert V3_10.with_delays().failure_delay_s == 0.0
