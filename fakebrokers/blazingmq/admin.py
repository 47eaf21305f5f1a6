"""Commands of an operator (docs/protocols/blazingmq.md, 9): those that clients use.

A command is text, and so is its answer; ``ENCODING JSON_COMPACT`` in front asks for JSON. Long reports are
JSON here either way, where a broker prints tables.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fakebrokers.blazingmq import admin_reports as reports
from fakebrokers.blazingmq.uri import parse_uri

if TYPE_CHECKING:
    from fakebrokers.blazingmq.broker import BlazingBroker
    from fakebrokers.blazingmq.queue import Queue

#: What there is, and what it does.
_COMMANDS = (
    ("HELP", "These commands"),
    ("BROKERCONFIG DUMP", "How the broker is configured"),
    ("DOMAINS DOMAIN <name> PURGE", "Drop the messages of a domain"),
    ("DOMAINS DOMAIN <name> INFOS", "What a domain is configured for, and its queues"),
    (
        "DOMAINS DOMAIN <name> QUEUE <queue_name> PURGE <appId>",
        "Drop what an app has still to get; *: all apps",
    ),
    ("DOMAINS DOMAIN <name> QUEUE <queue_name> INTERNALS", "What a queue holds, and who has it open"),
    ("DOMAINS RECONFIGURE <domain>", "Nothing: tests configure domains"),
    ("DOMAINS RESOLVER CACHE_CLEAR (<domain>|ALL)", "Nothing: there is no cache"),
    ("STAT SHOW", "Counts of all queues"),
    ("STAT LIST_TUNABLES", "Nothing: there are none"),
    ("CLUSTERS LIST", "All clusters"),
    ("CLUSTERS CLUSTER <name> STATUS", "Nodes, partitions and queues of a cluster"),
    ("CLUSTERS CLUSTER <name> FORCE_GC_QUEUES", "Nothing: queues stay"),
)
_ENCODINGS = ("TEXT", "JSON_COMPACT", "JSON_PRETTY")


class _Answer(NamedTuple):
    """What a command gives.

    Attributes:
        text: For people; None: the document.
    """

    document: dict[str, Any]
    text: str | None = None


_SUCCESS = _Answer({"success": {}}, "SUCCESS")


def _error(text: str) -> _Answer:
    return _Answer({"error": {"message": text}}, text)


def carry_out(broker: BlazingBroker, command: str) -> str:
    """What a command prints."""
    words = command.split()
    encoding = "TEXT"
    if words[:1] == ["ENCODING"]:
        encoding, words = (words[1] if len(words) > 1 else ""), words[2:]
        if encoding not in _ENCODINGS:
            text = f"The ENCODING option must be followed by one of the [{', '.join(_ENCODINGS)}] settings"
            return _undecoded(f"{text} (default: TEXT), but the following was given: {encoding}")
    if not words:
        return _undecoded("Empty input")
    answer = _answer(broker, words)
    if isinstance(answer, str):
        return answer
    if encoding == "TEXT" and answer.text is not None:
        return answer.text
    indent = None if encoding == "JSON_COMPACT" else 4
    separators = (",", ":") if indent is None else None
    return json.dumps(answer.document, indent=indent, separators=separators)


def _answer(broker: BlazingBroker, words: Sequence[str]) -> _Answer | str:
    """A string: the same in every encoding."""
    match words:
        case ["HELP", *_]:
            return _help()
        case ["CLUSTERS", "LIST"]:
            return _Answer({"clusterList": {"clusters": [reports.cluster(broker)]}})
        case ["CLUSTERS", "CLUSTER", name, *_] if name != reports.CLUSTER:
            return _error(f"cluster '{name}' not found !")
        case ["CLUSTERS", "CLUSTER", _, "STATUS"]:
            return _Answer({"clusterStatus": reports.status(broker)})
        case ["DOMAINS", "DOMAIN", name, *rest]:
            return _of_domain(broker, name, rest)
        case ["DOMAINS", "RECONFIGURE", name] if not broker.domains.has(name):
            return _error(f"Domain '{name}' doesn't exist")
        case (
            ["CLUSTERS", "CLUSTER", _, "FORCE_GC_QUEUES"]
            | ["DOMAINS", "RECONFIGURE", _]
            | ["DOMAINS", "RESOLVER", "CACHE_CLEAR", _]
        ):
            return _SUCCESS
        case ["STAT", "SHOW"]:
            return _Answer({"stats": json.dumps(reports.statistics(broker))})
        case ["STAT", "LIST_TUNABLES"]:
            return _Answer({"tunables": {"tunables": []}}, "")
        case ["BROKERCONFIG", "DUMP"]:
            config = json.dumps({"brokerVersion": broker.profile.broker_version}, indent=4)
            return _Answer({"brokerConfig": {"asJSON": config}}, config)
    return _undecoded(f'Invalid command. Send "HELP" for list of commands. Invalid command word: {words[0]}')


def _of_domain(broker: BlazingBroker, name: str, words: Sequence[str]) -> _Answer | str:
    if not broker.domains.has(name):
        return _error(f"Domain '{name}' doesn't exist")
    queues = {parse_uri(each.uri).queue: each for each in broker.queues.values() if _domain(each) == name}
    match words:
        case ["INFOS"]:
            return _Answer({"domainInfo": reports.domain(broker, name, list(queues.values()))})
        case ["PURGE"]:
            return _purged([reports.purged(queue, None) for queue in queues.values()])
        case ["QUEUE", queue, "INTERNALS"]:
            if queue not in queues:
                return _error(f"Queue '{queue}' was not found on domain '{name}'")
            return _Answer({"queueInternals": reports.internals(queues[queue])})
        case ["QUEUE", queue, "PURGE", app]:
            if queue not in queues:
                return _error(f"Queue was not found in a storage 'bmq://{name}/{queue}'")
            return _purged([reports.purged(queues[queue], None if app == "*" else app)])
        case ["QUEUE", _, "PURGE", _, *more]:
            text = "Unexpected trailing words in an otherwise well-formed command"
            return _undecoded(f"{text}: The extra words are: {' '.join(more)}")
    return _undecoded("The DOMAIN command must be followed by one of the [PURGE, INFOS, QUEUE] subcommands")


def _domain(queue: Queue) -> str:
    return parse_uri(queue.uri).domain


def _help() -> _Answer:
    commands = [{"command": command, "description": text} for command, text in _COMMANDS]
    lines = [f"    {command}\n        {text}" for command, text in _COMMANDS]
    text = "\n".join(["This process responds to the following CMD subcommands:", *lines])
    return _Answer({"help": {"commands": commands}}, text)


def _purged(found: Sequence[dict[str, Any]]) -> _Answer:
    done = [each["queue"] for each in found if "queue" in each]
    errors = [each["error"]["message"] for each in found if "error" in each]
    messages, size = (sum(each[f"num{what}Purged"] for each in done) for what in ("Messages", "Bytes"))
    first = f"Purged {messages} message(s) for a total of {_pretty(size)} from {len(found)} queue(s):"
    lines = [first, f"    {'NumBytes':>8}  {'NumMsgs':>10}      AppKey  {'AppId':>16}  QueueName"]
    for each in done:
        numbers = f"{_pretty(each['numBytesPurged']):>8}  {each['numMessagesPurged']:>10}"
        lines.append(f"    {numbers}  {each['appKey']}  {each['appId']:>16}  {each['queueUri']}")
    lines += ["Errors encountered: ", *errors] if errors else []
    return _Answer({"purgedQueues": {"queues": list(found)}}, "\n".join(lines))


def _pretty(size: int) -> str:
    return f"{size}  B" if size < 1024 else f"{size / 1024:.2f} KB"


def _undecoded(problem: str) -> str:
    return f"Unable to decode command (rc: -1, error: '{problem}')"
