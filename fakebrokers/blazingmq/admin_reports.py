"""What an operator is shown of clusters, domains and queues (docs/protocols/blazingmq.md, 9).

Documents of a broker, as far as clients read them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from fakebrokers.blazingmq.uri import parse_uri

if TYPE_CHECKING:
    from fakebrokers.blazingmq.broker import BlazingBroker
    from fakebrokers.blazingmq.domains import Domain
    from fakebrokers.blazingmq.queue import Queue
    from fakebrokers.blazingmq.stream import Opened

CLUSTER = "local"

#: Where there is no limit; a broker has one always.
_UNLIMITED = 2**63 - 1
_NO_KEY = "0" * 10
_PRIMARY = 2**32 - 2
#: Counts of a queue that are not kept here.
_UNCOUNTED = tuple(
    f"queue_{name}"
    for name in (
        *("put_msgs", "push_msgs", "ack_msgs", "confirm_msgs", "nack_msgs", "reject_msgs", "gc_msgs"),
        *(f"{what}_time_{kind}" for what in ("ack", "confirm", "queue") for kind in ("avg", "max")),
    )
)


def cluster(broker: BlazingBroker) -> dict[str, Any]:
    """Its nodes."""
    nodes = [
        {"hostName": node.host, "nodeId": number, "dataCenter": "UNSPECIFIED"}
        for number, node in enumerate(broker.nodes)
    ]
    return {"locality": "local", "name": CLUSTER, "nodes": nodes}


def status(broker: BlazingBroker) -> dict[str, Any]:
    """A cluster that is well; its first node leads, and has the one partition."""
    names = [f"[{node.host}, {number}]" for number, node in enumerate(broker.nodes)]
    nodes = [
        {"description": name, "status": "E_AVAILABLE", "primaryForPartitionIds": [] if number else [0]}
        for number, name in enumerate(names)
    ]
    queues = list(broker.queues.values())
    partition = {"numQueuesMapped": len(queues), "numActiveQueues": len(queues), "primaryNode": names[0]}
    summary = {"primaryNodeDescription": names[0], "primaryLeaseId": 1, "isAvailable": True}
    store = {"partitionId": 0, "state": "OPEN", "summary": {**summary, "storageContent": _storages(queues)}}
    return {
        "name": CLUSTER,
        "description": f"Cluster ({CLUSTER})",
        "selfNodeDescription": names[0],
        "isHealthy": True,
        "nodeStatuses": {"nodes": nodes},
        "electorInfo": {
            "electorState": "LEADER",
            "leaderNode": names[0],
            "leaderMessageSequence": {"electorTerm": 1, "sequenceNumber": 1},
            "leaderStatus": "ACTIVE",
        },
        "partitionsInfo": {"partitions": [{**partition, "primaryLeaseId": 1, "primaryStatus": "ACTIVE"}]},
        "queuesInfo": _storages(queues),
        "clusterStorageSummary": {"clusterFileStoreLocation": "memory", "fileStores": [store]},
    }


def domain(broker: BlazingBroker, name: str, queues: Sequence[Queue]) -> dict[str, Any]:
    """What the domain's queues hold, and what they may hold."""
    found = broker.domains.find(name)
    return {
        "name": name,
        "configJson": json.dumps(_configured(found), indent=2),
        "clusterName": CLUSTER,
        "capacityMeter": _domain_meter(name, found, queues),
        "queueUris": [queue.uri for queue in queues],
        "storageContent": _storages(queues) if queues else {},
    }


def internals(queue: Queue) -> dict[str, Any]:
    """What a queue holds, and who has it open."""
    name, limits = parse_uri(queue.uri).domain, queue.domain
    held = len(queue.messages), queue.store.bytes
    meter = _meter(f"queue [{queue.uri}]", held, (limits.queue_messages, limits.queue_bytes))
    usage = queue.store.usage.messages, queue.store.usage.bytes
    parent = _meter(f"domain [bmq://{name}]", usage, (limits.domain_messages, limits.domain_bytes))
    apps = [
        {"appId": app.name, "appKey": _key(app.name), "numMessages": _waiting(queue, app.name)}
        for app in queue.apps.values()
        if app.authorised
    ]
    state = {
        "uri": queue.uri,
        "id": _PRIMARY,
        "key": _key(queue.uri),
        "partitionId": 0,
        "storage": {"numMessages": held[0], "numBytes": held[1], "virtualStorages": apps},
        "capacityMeter": {**meter, "parent": parent},
        "handles": [_handle(each) for each in queue.handles],
    }
    consumers = [{"appId": app.name, "status": "alive" if app.streams else ""} for app in queue.apps.values()]
    engine = {"maxConsumers": limits.max_consumers, "mode": limits.mode, "consumerStates": consumers}
    return {"state": state, "queue": {"localQueue": {"queueEngine": {"fanout": engine}}}}


def statistics(broker: BlazingBroker) -> dict[str, Any]:
    """Counts by domain and queue; those over time are 0."""
    domains: dict[str, dict[str, Any]] = {}
    for queue in broker.queues.values():
        limits = queue.domain
        values = {
            **dict.fromkeys(_UNCOUNTED, 0),
            "queue_producers_count": sum(each.writes for each in queue.handles),
            "queue_consumers_count": sum(each.reads for each in queue.handles),
            "queue_content_msgs": len(queue.messages),
            "queue_content_bytes": queue.store.bytes,
            "queue_cfg_msgs": limits.queue_messages or _UNLIMITED,
            "queue_cfg_bytes": limits.queue_bytes or _UNLIMITED,
            "queue_role": 1,
        }
        domains.setdefault(parse_uri(queue.uri).domain, {})[queue.uri] = {"values": values}
    return {"domainQueues": {"domains": domains}}


def purged(queue: Queue, app: str | None) -> dict[str, Any]:
    """Drop what an app has still to get, or all; how much that was."""
    if app is not None and (app not in queue.apps or not queue.apps[app].authorised):
        text = f"Specified appId '{app}' not found in the storage of queue '{queue.uri}'."
        return {"error": {"message": text}}
    meant = [each for each in queue.messages.values() if app is None or app in each.waiting]
    size = sum(each.size for each in meant)
    queue.purge(app)
    key = _NO_KEY if app is None else _key(app)
    done = {"queueUri": queue.uri, "appId": app or "", "appKey": key}
    return {"queue": {**done, "numMessagesPurged": len(meant), "numBytesPurged": size}}


def _storages(queues: Sequence[Queue]) -> dict[str, Any]:
    return {"storages": [_storage(queue) for queue in queues]}


def _storage(queue: Queue) -> dict[str, Any]:
    held = {"numMessages": len(queue.messages), "numBytes": queue.store.bytes}
    whose = {"queueUri": queue.uri, "queueKey": _key(queue.uri), "partitionId": 0}
    return {**whose, **held, "isPersistent": False, "internalQueueId": _PRIMARY}


def _handle(handle: Opened) -> dict[str, Any]:
    streams = [
        {"subId": each.sub_id, "appId": name, "numUnconfirmedMessages": len(each.unconfirmed)}
        for name, each in handle.streams.items()
    ]
    return {"clientDescription": "client", "parametersJson": "", "isClientClusterMember": False} | {
        "subStreams": streams
    }


def _domain_meter(name: str, limits: Domain, queues: Sequence[Queue]) -> dict[str, Any]:
    held = sum(len(each.messages) for each in queues), sum(each.store.bytes for each in queues)
    return _meter(f"domain [bmq://{name}]", held, (limits.domain_messages, limits.domain_bytes))


def _meter(name: str, held: tuple[int, int], most: tuple[int, int]) -> dict[str, Any]:
    return {
        "name": name,
        "isDisabled": False,
        "numMessages": held[0],
        "messageCapacity": most[0] or _UNLIMITED,
        "numMessagesReserved": 0,
        "numBytes": held[1],
        "byteCapacity": most[1] or _UNLIMITED,
        "numBytesReserved": 0,
    }


def _configured(limits: Domain) -> dict[str, Any]:
    apps = {"appIDs": list(limits.app_ids)} if limits.mode == "fanout" else {}
    return {
        "name": "",
        "mode": {limits.mode: apps},
        "storage": {
            "domainLimits": _limits(limits.domain_messages, limits.domain_bytes),
            "queueLimits": _limits(limits.queue_messages, limits.queue_bytes),
            "config": {"inMemory": {}},
        },
        "maxConsumers": limits.max_consumers,
        "maxProducers": limits.max_producers,
        "maxQueues": limits.max_queues,
        "messageTtl": limits.message_ttl_s,
        "maxDeliveryAttempts": limits.max_delivery_attempts,
        "deduplicationTimeMs": limits.deduplication_time_ms,
    }


def _limits(messages: int, size: int) -> dict[str, int]:
    return {"messages": messages or _UNLIMITED, "bytes": size or _UNLIMITED}


def _waiting(queue: Queue, app: str) -> int:
    return sum(app in each.waiting for each in queue.messages.values())


def _key(name: str) -> str:
    """Of a queue or an app: five bytes, as they are printed."""
    return sha256(name.encode()).hexdigest()[:10].upper()
