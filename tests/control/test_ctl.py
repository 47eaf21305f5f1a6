"""``fakebrokers ctl``: the generic commands, and the words of rabbitmqctl."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from fakebrokers.cli import cli, main
from fakebrokers.control.api import ControlApi
from fakebrokers.control.brokers import Brokers
from fakebrokers.control.client import ControlClient, Unreachable
from fakebrokers.control.listing import Listing
from fakebrokers.errors import FakeBrokerError, UsageError
from fakebrokers.rabbitmq_stream.server import RabbitMQStream
from tests.benchmarks.stream_load import Connection, frame, text
from tests.marked import PASSWORD


def run(*words: str) -> str:
    """What a command prints; its error is raised."""
    done = CliRunner().invoke(cli, ["ctl", *words], catch_exceptions=False, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.output


class Tool:
    """``ctl rabbitmq`` for a broker of two nodes."""

    def __init__(self, url: str, server: RabbitMQStream) -> None:
        self.url = url
        self.server = server

    def __call__(self, *words: str) -> str:
        return run("rabbitmq", "--control", self.url, *words)


@pytest.fixture
def tool(brokers: Brokers, api: ControlApi) -> Tool:
    brokers.add("rabbitmq-stream", "b", {"nodes": 2})
    server = brokers.find("b")
    assert isinstance(server, RabbitMQStream)
    server.create_stream("orders")
    return Tool(api.url, server)


@pytest.fixture
def client(tool: Tool) -> Iterator[Connection]:
    connection = Connection(tool.server.host, tool.server.port)
    connection.ask(frame(1, bytes([0, 0, 0, 6, 7]) + text("ref") + text("orders")))
    yield connection
    connection.close()


# any broker


def test_operations_by_name(brokers: Brokers, api: ControlApi) -> None:
    brokers.add("rabbitmq-stream", "b", {})
    assert [row["name"] for row in json.loads(run(api.url))] == ["b"]
    assert run(api.url, "create_stream", "name=orders", 'arguments={"max_age": "1h"}') == ""
    run(api.url, "publish", "name=orders", 'bodies=["tea"]')
    assert [row["body"] for row in json.loads(run(api.url, "messages", "name=orders"))] == ["tea"]
    added = run(api.url, "faults", 'match={"role": "confirm"}', 'effect={"type": "drop"}', "name=lost")
    assert json.loads(added) == {"names": ["lost"]}
    assert [row["name"] for row in json.loads(run(api.url, "faults"))["faults"]] == ["lost"]
    with pytest.raises(UsageError, match=r"body\.nam: expected one of name, arguments; got 'nam'"):
        run(api.url, "create_stream", "nam=x")
    with pytest.raises(click.UsageError, match="expected NAME=VALUE, got 'orders'"):
        run(api.url, "create_stream", "orders")


def test_one_of_several_brokers(brokers: Brokers, api: ControlApi) -> None:
    with pytest.raises(UsageError, match="there are: none"):
        run(api.url, "streams")
    for name in ("a", "b"):
        brokers.add("rabbitmq-stream", name, {})
    with pytest.raises(UsageError, match="there are: a, b"):
        run(api.url, "streams")
    assert json.loads(run(api.url, "streams", "--broker", "b")) == []


def test_where_no_control_api_answers(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unreachable, match="no control API answers"):
        run(f"http://127.0.0.1:{port}", "reset", "--broker", "b")
    with pytest.raises(UsageError, match="expected the URL of a control API"):
        ControlClient("ftp://x")
    for words, code in ((["ctl", f"http://127.0.0.1:{port}"], 3), (["ctl", "nothing"], 64)):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == code
    assert "Traceback" not in capsys.readouterr().err


def test_an_answer_that_is_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(b"HTTP/1.0 200 OK\r\n\r\nhello")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(Unreachable, match="is no control API"):
            run(f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread.join()


# RabbitMQ


def test_users(tool: Tool) -> None:
    assert tool("add_user", "bob", "old") == ""
    users = tool.server.broker.access.users
    assert (users["bob"].password, users["bob"].permissions, users["bob"].tags) == ("old", {}, ())
    with pytest.raises(UsageError, match="user 'bob' exists already"):
        tool("add_user", "bob", "other")
    tool("change_password", "bob", PASSWORD)
    tool("set_user_tags", "bob", "monitoring", "management")
    assert users["bob"].password == PASSWORD
    assert tool("list_users", "-q") == "user\ttags\nguest\t[administrator]\nbob\t[monitoring, management]\n"
    tool("add_vhost", "test")
    tool("set_permissions", "-p", "test", "bob", "^a", "", ".*")
    assert tool("list_permissions", "-p", "test", "-s") == "bob\t^a\t\t.*\n"
    assert tool("list_user_permissions", "bob", "--formatter", "csv") == (
        "vhost,configure,write,read\ntest,^a,,.*\n"
    )
    tool("clear_permissions", "-p", "test", "bob")
    assert tool("list_permissions", "-p", "test") == ""
    assert tool("list_vhosts", "--no-table-headers") == "/\ntest\n"
    tool("delete_vhost", "test")
    tool("delete_user", "bob")
    assert json.loads(tool("list_users", "--formatter=json")) == [
        {"user": "guest", "tags": ["administrator"]}
    ]
    with pytest.raises(UsageError, match="no user 'bob'; there are: guest"):
        tool("change_password", "bob", "x")
    with pytest.raises(UsageError, match="virtual host '/' exists already"):
        tool("add_vhost", "/")


def test_policies(tool: Tool) -> None:
    tool("set_policy", "--priority", "3", "--apply-to", "streams", "p", "^o", '{"max-age": "1h"}')
    assert tool("list_policies", "-s") == '/\tp\t^o\tstreams\t[{"max-age", "1h"}]\t3\n'
    for definition in ('{"max-age": "1x"}', '{"other": 1}', "{}", "[]", "x"):
        with pytest.raises(UsageError, match="definition"):
            tool("set_policy", "p", "^o", definition)
    tool("clear_policy", "p")
    assert tool("list_policies") == ""


def test_connections(tool: Tool, client: Connection) -> None:
    client.ask(frame(7, bytes([0, 0, 0, 8, 3]) + text("orders") + b"\0\1\0\5" + bytes(4)))
    (listed,) = tool("list_stream_connections", "-s").splitlines()
    assert listed.endswith(f"-> 127.0.0.1:{tool.server.port}")
    assert tool("list_stream_connections", "user,vhost", "node", "-s") == "guest\t/\trabbit@127.0.0.1\n"
    with pytest.raises(UsageError, match="no column 'nope'"):
        tool("list_stream_connections", "nope")
    assert tool("list_stream_publishers", "stream", "reference", "-s") == "orders\tref\n"
    assert tool("list_stream_consumers", "--stream", "orders", "credits", "active", "-s") == "5\ttrue\n"
    assert tool("list_stream_consumers", "--stream", "other") == ""
    with pytest.raises(UsageError, match="no connection 'x'; there are: 127"):
        tool("close_connection", "x")
    tool("close_connection", listed)
    assert client.socket.recv(1) == b""


@pytest.mark.parametrize(
    "words",
    [
        ("eval", 'rabbit_stream:kill_connection("{}").'),
        ("close_connection", "c1"),
        ("close_all_connections",),
    ],
)
def test_other_ways_to_end_a_connection(tool: Tool, client: Connection, words: tuple[str, ...]) -> None:
    (name,) = tool("list_stream_connections", "-s").splitlines()
    tool(*(word.replace("{}", name) for word in words))
    assert client.socket.recv(1) == b""


def test_groups(tool: Tool, client: Connection) -> None:
    properties = (
        bytes([0, 0, 0, 2]) + text("name") + text("app") + text("single-active-consumer") + text("true")
    )
    for number in (3, 4):
        client.socket.sendall(
            frame(7, bytes([0, 0, 0, 8, number]) + text("orders") + b"\0\1\0\5" + properties)
        )
        client.read()
        if number == 3:
            client.read()  # ConsumerUpdate
    assert tool("list_stream_consumer_groups", "-s") == "orders\tapp\t-1\t2\n"
    listed = tool("list_stream_group_consumers", "--stream", "orders", "--reference", "app", "-s")
    assert [line.split("\t")[::2] for line in listed.splitlines()] == [["3", "active"], ["4", "inactive"]]
    with pytest.raises(UsageError, match="no group 'other' on stream 'orders'"):
        tool("list_stream_group_consumers", "--stream", "orders", "--reference", "other")


KILL_LEADER = 'exit(rabbit_stream_manager:lookup_leader(<<"/">>, <<"orders">>), kill).'


@pytest.mark.parametrize("words", [("restart_stream", "orders"), ("eval", KILL_LEADER)])
def test_a_stream_elects_a_leader_again(tool: Tool, client: Connection, words: tuple[str, ...]) -> None:
    stream = tool.server.stream_named("orders")
    leader, epoch = stream.membership.leader, stream.epoch
    tool(*words)
    assert client.read()[:6] == b"\0\x10\0\1\0\x06"  # MetadataUpdate, code 6
    assert (stream.membership.leader, stream.epoch) == (leader, epoch + 1)


def test_leaders_and_nodes(tool: Tool) -> None:
    place = tool.server.stream_named("orders").membership
    first, second = tool.server.nodes
    tool("move_leader", "orders", second.name)
    assert place.leader is second
    tool("move_leader", "orders", "none")
    assert place.leader is None
    tool("move_leader", "orders", "1")
    tool("stop_app")
    assert (place.leader, first.up) == (second, False)
    tool("restart_stream", "orders")
    assert place.leader is second
    tool("start_app", "-n", first.name)
    assert first.up
    with pytest.raises(UsageError, match=r"no node 'x'; there are: rabbit@127\.0\.0\.1, rabbit2@"):
        tool("stop_app", "--node", "x")


def test_alarms_and_other_expressions(tool: Tool) -> None:
    tool("eval", "rabbit_alarm:set_alarm({{resource_limit, disk, node()}, []}).")
    assert tool.server.broker.disk_alarm
    tool("eval", "rabbit_alarm:clear_alarm({resource_limit, disk, node()}).")
    assert not tool.server.broker.disk_alarm
    tool("set_disk_alarm", "on")
    assert tool.server.broker.disk_alarm
    with pytest.raises(UsageError, match=r"the fake knows no Erlang but .* got 'halt\(\)\.'"):
        tool("eval", "halt().")


def test_the_url_from_the_environment(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKEBROKERS_CONTROL", tool.url)
    assert run("rabbitmq", "list_vhosts", "-s") == "/\n"


def test_cells() -> None:
    row = {"a": None, "b": True, "c": ["x", 1], "d": {"k": "v", "n": 1}, "e": "two\nlines\t\x1b"}
    assert Listing("table", False).text([row], list(row)) == (
        '\ttrue\t[x, 1]\t[{"k", "v"}, {"n", 1}]\ttwo\\nlines\\t\\x1b\n'
    )
    with pytest.raises(FakeBrokerError, match="expected table, csv or json"):
        Listing("xml", True)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ["localhost:1", "messages", "name=my orders"],
            "did you mean 'fakebrokers ctl http://localhost:1 messages 'name=my orders''?",
        ),
        (["https://localhost:1/"], "did you mean 'fakebrokers ctl http://localhost:1/'?"),
        (["rabitmq", "add_user"], "did you mean 'rabbitmq'? Choose from: rabbitmq"),
        (["messages"], "expected the URL of a control API, such as http://127.0.0.1:9090"),
    ],
)
def test_whoever_gives_no_url_reads_how_to_call_it(words: list[str], problem: str) -> None:
    with pytest.raises(click.UsageError) as refused:
        run(*words)
    assert problem in refused.value.message
