"""Commands of an operator (docs/protocols/blazingmq.md, 9): those that say something about queues."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from fakebrokers.blazingmq.codes import DEFAULT_APP
from fakebrokers.blazingmq.uri import parse_uri

if TYPE_CHECKING:
    from fakebrokers.blazingmq.broker import BlazingBroker
    from fakebrokers.blazingmq.queue import Queue

HELP = """This process responds to the following CMD subcommands:
    HELP
    CLUSTERS LIST
    DOMAINS DOMAIN <domain> INFOS
    DOMAINS DOMAIN <domain> PURGE
    DOMAINS DOMAIN <domain> QUEUE <queue> PURGE APPID <appId|*>
    BROKERCONFIG DUMP"""


def carry_out(broker: BlazingBroker, command: str) -> str:
    """What a command prints."""
    match command.removeprefix("ENCODING JSON_COMPACT ").removeprefix("ENCODING JSON_PRETTY ").split():
        case ["HELP", *_]:
            return HELP
        case ["CLUSTERS", "LIST"]:
            return json.dumps({"clusterList": {"clusters": [_cluster(broker)]}})
        case ["DOMAINS", "DOMAIN", domain, "INFOS"]:
            return json.dumps({"domainInfo": _domain(broker, domain)})
        case ["DOMAINS", "DOMAIN", domain, "PURGE"]:
            return _purged(sum(queue.purge() for queue in _queues(broker, domain)))
        case ["DOMAINS", "DOMAIN", domain, "QUEUE", name, "PURGE", "APPID", app_id]:
            found = [each for each in _queues(broker, domain) if parse_uri(each.uri).queue == name]
            if not found:
                return f"Queue '{name}' was not found in domain '{domain}'"
            return _purged(sum(queue.purge(_app(app_id)) for queue in found))
        case ["BROKERCONFIG", "DUMP"]:
            return json.dumps({"brokerVersion": broker.profile.broker_version})
    return f"Unable to decode command '{command}' [error: 'unknown command']"


def _queues(broker: BlazingBroker, domain: str) -> list[Queue]:
    return [queue for queue in broker.queues.values() if parse_uri(queue.uri).domain == domain]


def _cluster(broker: BlazingBroker) -> dict[str, object]:
    nodes = [
        {"hostName": node.host, "nodeId": number, "dataCenter": "local"}
        for number, node in enumerate(broker.nodes)
    ]
    return {"name": "local", "locality": "LOCAL", "nodes": nodes}


def _domain(broker: BlazingBroker, name: str) -> dict[str, object]:
    """What the domain's queues hold, and what they may hold; 0 for no limit."""
    queues = _queues(broker, name)
    meter = {
        "name": name,
        "isDisabled": False,
        "numMessages": sum(len(queue.messages) for queue in queues),
        "messageCapacity": queues[0].domain.domain_messages if queues else 0,
        "numBytes": sum(queue.bytes for queue in queues),
        "byteCapacity": queues[0].domain.domain_bytes if queues else 0,
    }
    uris = [queue.uri for queue in queues]
    return {"name": name, "clusterName": "local", "capacityMeter": meter, "queueUris": uris}


def _app(app_id: str) -> str | None:
    """None for all of them."""
    return None if app_id == "*" else app_id or DEFAULT_APP


def _purged(messages: int) -> str:
    return f"Purged {messages} message(s)"
