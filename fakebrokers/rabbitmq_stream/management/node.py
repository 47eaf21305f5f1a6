"""The broker itself: overview, nodes, and the health checks that tools ask first."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from fakebrokers.rabbitmq_stream.cluster import Node
from fakebrokers.rabbitmq_stream.management.asked import (
    Answer,
    Asked,
    Route,
    bad,
    listing,
    not_found,
    one,
)
from fakebrokers.rabbitmq_stream.rows import Row, sessions, tag_rows

_OK: Answer = (200, {"status": "ok"})
_UNHEALTHY = 503
_LARGEST_PORT = 65535


def _overview(asked: Asked) -> Answer:
    broker = asked.broker
    version = broker.profile.version
    stored = sum(len(stream) for stream in broker.streams.values())
    return 200, {
        "management_version": version,
        "product_name": "RabbitMQ",
        "product_version": version,
        "rabbitmq_version": version,
        "cluster_name": _cluster_name(asked),
        "node": broker.cluster.nodes[0].name,
        "rates_mode": "none",
        "disable_stats": False,
        "enable_queue_totals": True,
        "exchange_types": [{"name": "direct", "enabled": True}],
        "object_totals": {
            "channels": 0,
            "connections": len(list(sessions(asked.server))),
            "consumers": len(list(tag_rows(asked.server))),
            "exchanges": len(broker.super_streams),
            "queues": len(broker.streams),
        },
        "queue_totals": {"messages": stored, "messages_ready": stored, "messages_unacknowledged": 0},
        "message_stats": {},
        "listeners": _listeners(asked),
        "contexts": [],
    }


def _cluster_name(asked: Asked) -> str:
    return asked.broker.cluster.nodes[0].name


def _listeners(asked: Asked, node: Node | None = None) -> list[Row]:
    """What listens, on one node or on all that run; the API is the first node's."""
    nodes = [each for each in asked.broker.cluster.nodes if each.up and node in (None, each)]
    found = [_listener(asked, each, "stream", each.port) for each in nodes]
    if asked.server.tls is not None:
        found += [_listener(asked, each, "stream/ssl", each.tls_port) for each in nodes]
    first = asked.broker.cluster.nodes[0]
    if first in nodes:
        found.append(_listener(asked, first, "http", asked.port))
    return found


def _listener(asked: Asked, node: Node, protocol: str, port: int) -> Row:
    return {"node": node.name, "protocol": protocol, "ip_address": asked.server.host, "port": port}


def _node_rows(asked: Asked) -> Iterable[Row]:
    for node in asked.broker.cluster.nodes:
        yield {
            "name": node.name,
            "type": "disc",
            "running": node.up,
            "being_drained": False,
            "partitions": [],
            "os_pid": str(os.getpid()),
            "processors": os.cpu_count(),
            "rates_mode": "none",
            "mem_alarm": False,
            "disk_free_alarm": asked.broker.disk_alarm,
            "sockets_used": sum(1 for client in asked.broker.clients if client.node is node),
            "auth_mechanisms": [{"name": each, "enabled": True} for each in asked.broker.profile.mechanisms],
            "exchange_types": [{"name": "direct", "enabled": True}],
            "enabled_plugins": ["rabbitmq_management", "rabbitmq_stream", "rabbitmq_stream_management"],
        }


def _node(asked: Asked) -> Answer:
    return one(row for row in _node_rows(asked) if row["name"] == asked.at["node"])


# health


def _healthy(asked: Asked) -> Answer:
    return _OK


def _failed(reason: str, **more: object) -> Answer:
    return _UNHEALTHY, {"status": "failed", "reason": reason, **more}


def _alarms(where: str) -> Callable[[Asked], Answer]:
    def check(asked: Asked) -> Answer:
        if not asked.broker.disk_alarm:
            return _OK
        alarms = [{"node": node.name, "resource": "disk"} for node in asked.broker.cluster.nodes]
        return _failed(f"There are alarms in effect {where}", alarms=alarms)

    return check


def _port_listener(asked: Asked) -> Answer:
    text = asked.at["port"]
    if not (text.isascii() and text.isdecimal() and len(text) < 6 and int(text) <= _LARGEST_PORT):
        raise bad("path", f"expected a port from 0 to {_LARGEST_PORT}, got {text[:100]!r}")
    ports = [row["port"] for row in _listeners(asked, asked.broker.cluster.nodes[0])]
    if int(text) in ports:
        return 200, {"status": "ok", "port": int(text)}
    return _failed("No active listener", missing=int(text), ports=ports)


def _protocol_listener(asked: Asked) -> Answer:
    wanted = asked.at["protocol"]
    there = [row["protocol"] for row in _listeners(asked, asked.broker.cluster.nodes[0])]
    if any(each in there for each in wanted.split(",")):
        return 200, {"status": "ok", "protocol": wanted}
    return _failed("No active listener", missing=wanted, protocols=there)


def _in_service(asked: Asked) -> Answer:
    if asked.broker.cluster.nodes[0].up:
        return _OK
    return _failed("this rabbit node is not currently available to serve")


def _below_limit(asked: Asked) -> Answer:
    limit = asked.broker.access.max_connections
    open_ = len(list(sessions(asked.server)))
    if limit is None or open_ < limit:
        return _OK
    return _failed("node connection limit is reached", connections=open_)


def _ready(asked: Asked) -> Answer:
    served = _in_service(asked)
    return _below_limit(asked) if served is _OK else served


def _critical(asked: Asked) -> Answer:
    """Whether a stream would lose its majority with this node."""
    if len(asked.broker.cluster.nodes) == 1:
        return 200, {"status": "ok", "reason": "single node cluster"}
    first = asked.broker.cluster.nodes[0]
    critical = [
        {"name": stream.name, "virtual_host": stream.virtual_host, "type": "stream"}
        for stream in asked.broker.streams.values()
        if first in stream.membership.members
        and 2 * sum(1 for node in stream.membership.members if node.up and node is not first)
        <= len(stream.membership.members)
    ]
    if not critical:
        return _OK
    reason = "There are quorum queues that would lose their quorum if the target node is shut down"
    return _failed(reason, queues=critical)


def _alive(asked: Asked) -> Answer:
    asked.virtual_host()
    return _OK


def _checked_node(asked: Asked) -> Answer:
    for node in asked.broker.cluster.nodes:
        if node.name == asked.at.get("node", node.name):
            return _OK if node.up else _failed("the node does not run")
    raise not_found()


ROUTES = (
    Route("GET", "/overview", _overview),
    Route("GET", "/cluster-name", lambda asked: (200, {"name": _cluster_name(asked)})),
    Route("GET", "/version", lambda asked: (200, asked.broker.profile.version)),
    Route("GET", "/extensions", lambda asked: (200, [])),
    Route("GET", "/nodes", lambda asked: listing(asked, _node_rows(asked))),
    Route("GET", "/nodes/{node}", _node),
    Route("GET", "/health/checks/alarms", _alarms("in the cluster")),
    Route("GET", "/health/checks/local-alarms", _alarms("on the node")),
    Route("GET", "/health/checks/port-listener/{port}", _port_listener),
    Route("GET", "/health/checks/protocol-listener/{protocol}", _protocol_listener),
    Route("GET", "/health/checks/virtual-hosts", _healthy),
    Route("GET", "/health/checks/metadata-store/initialized", _healthy),
    Route("GET", "/health/checks/node-is-quorum-critical", _critical),
    Route("GET", "/health/checks/is-in-service", _in_service),
    Route("GET", "/health/checks/below-node-connection-limit", _below_limit),
    Route("GET", "/health/checks/ready-to-serve-clients", _ready),
    Route("GET", "/healthchecks/node", _checked_node),
    Route("GET", "/healthchecks/node/{node}", _checked_node),
    Route("GET", "/aliveness-test/{vhost}", _alive),
)
