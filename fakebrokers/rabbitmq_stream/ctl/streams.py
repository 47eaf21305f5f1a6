"""Connections, publishers, consumers and their groups; streams and nodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import click

from fakebrokers.errors import UsageError
from fakebrokers.rabbitmq_stream.ctl.tool import VHOST, client, command, rabbitmq, show, split, tell

# connections


def _connections() -> list[dict[str, Any]]:
    return [
        {**row, "conn_name": row["name"], "pid": row["connection"]}
        for row in client().tell("stream_connections")
    ]


@command
@click.argument("columns", nargs=-1, metavar="[COLUMN]...")
def list_stream_connections(columns: Sequence[str]) -> None:
    """List the connections: conn_name, or the columns that are asked for."""
    show(_connections(), split(columns) or ("conn_name",))


@command
@click.argument("name")
@click.argument("reason", default="")
def close_connection(name: str, reason: str) -> None:
    """End a connection (its pid or conn_name) as an operator does: without a Close frame."""
    for row in _connections():
        if name in (row["pid"], row["conn_name"]):
            client().delete(f"connections/{row['pid']}")
            return
    there = ", ".join(row["conn_name"] for row in _connections()) or "none"
    raise UsageError(f"no connection {name!r}; there are: {there}")


@command
@click.argument("reason", default="")
def close_all_connections(reason: str) -> None:
    """End all connections."""
    tell("kill")


def _of_queue(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "stream": row["queue"]["name"], "connection_name": row["connection_details"]["name"]}


@command
@VHOST
@click.option("--stream", help="Of this one only.")
@click.argument("columns", nargs=-1, metavar="[COLUMN]...")
def list_stream_publishers(virtual_host: str, stream: str | None, columns: Sequence[str]) -> None:
    """List the publishers."""
    rows = _of_streams("stream_publishers", virtual_host, stream)
    show(rows, split(columns) or ("stream", "connection_name", "publisher_id", "reference"))


@command
@VHOST
@click.option("--stream", help="Of this one only.")
@click.argument("columns", nargs=-1, metavar="[COLUMN]...")
def list_stream_consumers(virtual_host: str, stream: str | None, columns: Sequence[str]) -> None:
    """List the subscriptions."""
    rows = _of_streams("stream_consumers", virtual_host, stream)
    default = (
        "connection_name",
        "subscription_id",
        "stream",
        "offset",
        "offset_lag",
        "credits",
        "active",
        "properties",
    )
    show(rows, split(columns) or default)


def _of_streams(operation: str, virtual_host: str, stream: str | None) -> list[dict[str, Any]]:
    rows = [_of_queue(row) for row in client().tell(operation) if row["queue"]["vhost"] == virtual_host]
    return [row for row in rows if stream in (None, row["stream"])]


# groups


@command
@VHOST
@click.argument("columns", nargs=-1, metavar="[COLUMN]...")
def list_stream_consumer_groups(virtual_host: str, columns: Sequence[str]) -> None:
    """List the groups of single active consumers."""
    rows = [row for row in client().tell("consumer_groups") if row["vhost"] == virtual_host]
    show(rows, split(columns) or ("stream", "reference", "partition_index", "consumers"))


@command
@VHOST
@click.option("--stream", required=True)
@click.option("--reference", required=True)
@click.argument("columns", nargs=-1, metavar="[COLUMN]...")
def list_stream_group_consumers(
    virtual_host: str, stream: str, reference: str, columns: Sequence[str]
) -> None:
    """List the consumers of a group, in the order in which they came."""
    rows = client().tell("group_consumers", stream=stream, reference=reference, virtual_host=virtual_host)
    if not rows:
        raise UsageError(f"no group {reference!r} on stream {stream!r} in {virtual_host!r}")
    show(rows, split(columns) or ("subscription_id", "connection_name", "state"))


# streams and nodes


@command
@VHOST
@click.argument("stream")
def restart_stream(virtual_host: str, stream: str) -> None:
    """Let the nodes of a stream elect a leader again."""
    tell("restart_stream", name=stream, virtual_host=virtual_host)


@command
@click.argument("stream")
@click.argument("node")
def move_leader(stream: str, node: str) -> None:
    """Let another node (its name or number) lead a stream; 'none': nobody does."""
    tell("move_leader", name=stream, node=None if node == "none" else _number(node))


def _number(node: str) -> int:
    rows = client().tell("nodes")
    for row in rows:
        if node in (row["name"], str(row["number"])):
            return int(row["number"])
    there = ", ".join(row["name"] for row in rows)
    raise UsageError(f"no node {node!r}; there are: {there}")


@command
def stop_app() -> None:
    """Stop a node (-n NODE; else the first): its connections end."""
    tell("stop_node", node=_number(_node()))


@command
def start_app() -> None:
    """Start a node (-n NODE; else the first)."""
    tell("start_node", node=_number(_node()))


def _node() -> str:
    node: str = click.get_current_context().meta.get("node", "1")
    return node


@command
@click.argument("state", type=click.Choice(["on", "off"]))
def set_disk_alarm(state: str) -> None:
    """Whether publishers are refused because the disk is full."""
    tell("set_disk_alarm", on=state == "on")


#: What suites of clients have rabbitmqctl evaluate; the fake knows no Erlang.
_LEADER = re.compile(r'lookup_leader\(<<"(.*?)">>,\s*<<"(.*?)">>\).*\bkill\b', re.DOTALL)
_KILL = re.compile(r'rabbit_stream:kill_connection\("(.*)"\)', re.DOTALL)
_ALARM = re.compile(r"rabbit_alarm:(set|clear)_alarm\(\{+resource_limit,\s*disk\b")


@rabbitmq.command(name="eval")
@click.argument("expression")
@click.pass_context
def evaluate(ctx: click.Context, expression: str) -> None:
    """Do what a few expressions of client suites ask for: end a connection, kill a leader, disk alarm."""
    if found := _LEADER.search(expression):
        tell("restart_stream", name=found[2], virtual_host=found[1])
    elif found := _KILL.search(expression):
        ctx.invoke(close_connection, name=found[1])
    elif found := _ALARM.search(expression):
        tell("set_disk_alarm", on=found[1] == "set")
    else:
        raise UsageError(
            "the fake knows no Erlang but rabbit_stream:kill_connection, exit(lookup_leader(...), kill) and "
            f"rabbit_alarm for the disk; got {expression[:200]!r}"
        )
    click.echo("ok")
