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
    DOMAINS DOMAIN <domain> INFOS
    DOMAINS DOMAIN <domain> PURGE
    DOMAINS DOMAIN <domain> QUEUE <queue> PURGE APPID <appId|*>
    BROKERCONFIG DUMP"""


def carry_out(broker: BlazingBroker, command: str) -> str:
    """What a command prints."""
    match command.removeprefix("ENCODING JSON_COMPACT ").removeprefix("ENCODING JSON_PRETTY ").split():
        case ["HELP", *_]:
            return HELP
        case ["DOMAINS", "DOMAIN", domain, "INFOS"]:
            return json.dumps({queue.uri: _infos(queue) for queue in _queues(broker, domain)})
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


def _infos(queue: Queue) -> dict[str, object]:
    return {
        "messages": len(queue.messages),
        "bytes": queue.bytes,
        "undelivered": {name: app.undelivered for name, app in queue.apps.items()},
    }


def _app(app_id: str) -> str | None:
    """None for all of them."""
    return None if app_id == "*" else app_id or DEFAULT_APP


def _purged(messages: int) -> str:
    return f"Purged {messages} message(s)"
