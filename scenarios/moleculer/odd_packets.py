"""MOL-1 Discovery, and what no correct node says: foreign versions, a second instance, broken packets."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import Moleculer
from fakebrokers.moleculer.node import Node
from fakebrokers.moleculer.services import Service
from scenarios.moleculer._steps import (
    AT_ONCE_S,
    BEAT_MOST_S,
    BOTH_WAYS,
    MQTT,
    NATS,
    NODE,
    REDIS,
    SERVICE,
    a_service,
    ask,
    call,
    echo,
    is_answered,
    joined,
    limit,
    peer,
    raw,
    runs,
    serves,
    settled,
    until,
)
from scenarios.moleculer._wire import (
    ALL_TOPICS,
    ID_TOPICS,
    beats,
    came,
    mark,
    packets,
    places,
    said,
    subscriptions,
)

MUTE = {"announces": False, "answers_discover": False}
#: In place of a `ver` that is not there.
ABSENT: Any = object()


def signed(ver: Any, sender: Any, values: dict[str, Any]) -> dict[str, Any]:
    """A packet's values, followed by the two that end each packet."""
    return {**values, **({} if ver is ABSENT else {"ver": ver}), "sender": sender}


def info_of(id: str) -> dict[str, Any]:
    """An INFO that offers ``<id>.echo``."""
    return {
        "services": [Service(id, {"echo": echo}).info()],
        "ipList": ["127.0.0.1"],
        "hostname": "elsewhere",
        "client": {"type": "nodejs", "version": "0.0.0", "langVersion": "v20"},
        "config": {},
        "instanceID": f"instance of {id}",
        "metadata": {},
        "seq": 1,
    }


def request_of(id: str, action: str = "s.echo") -> dict[str, Any]:
    """A REQUEST with all that belongs to it."""
    return {
        "id": id,
        "action": action,
        "params": {"n": 1},
        "meta": {},
        "timeout": 0,
        "level": 1,
        "tracing": None,
        "parentID": None,
        "requestID": id,
        "caller": None,
        "stream": False,
    }


#: What the rules say of a node that takes a number for its version, as it may.
READS_NUMBERS = ("sends-what-it-was-given", "uses-what-it-has")


@scenario("MOL-1.08", "MUST", "high", basis=["M9"], roles=BOTH_WAYS, allows=READS_NUMBERS)
async def wrong_version(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Wrong protocol version.

    Fault: A stranger sends INFO with an action, and REQUEST for a served action, with `ver` "3", with the
    other real version ("5" to a v4 client, "4" to a v5 client), with the number 4 or 5, and without `ver`;
    then a correct REQUEST
    Pass: For "3" and the other version: no RESPONSE, the action does not run, a call to the stranger's action
    fails without a REQUEST. Number or missing `ver`: the same; non-strict if processed. The correct REQUEST
    is answered within 1 s. Clients run with the version check disabled are not judged
    Seen: moleculerpy#2; moleculerpy accepts a missing or numeric ver (source); measured: moleculer 0.14.36
    and 0.15.2 drop all
    """
    node = peer(broker)
    await joined(broker, client, calls_s=1.0, offers=[a_service({"echo": "echo"})])
    own = packets(broker, "Discover")[0].ver
    other = "5" if own == "4" else "4"
    for number, ver in enumerate(("3", other, int(own), ABSENT)):
        id = f"stranger-{number}"
        stranger = peer(broker, id, **MUTE)
        raw(stranger, "INFO", signed(ver, id, info_of(id)), "")
        raw(stranger, "REQ", signed(ver, id, request_of(f"asked by {id}")))
        await settled(node)
        answered = said(broker, "Response", where=lambda p, id=id: p.id == f"asked by {id}")  # type: ignore[misc]
        ran = f"asked by {id}" in runs(client)
        since = mark(broker)
        result = await call(client, f"{id}.echo", timeout_s=1.0)
        routed = said(broker, "Request", since)
        if ver in ("3", other):
            what = "another version"
            expect.that(
                not answered,
                f"a REQUEST of {what} is not answered",
                id="a-request-of-another-version-is-not-answered",
            )
            expect.that(
                not ran, f"a REQUEST of {what} does not run", id="a-request-of-another-version-does-not-run"
            )
            expect.that(
                not routed,
                f"no call is routed to a node of {what}",
                id="no-call-is-routed-to-a-node-of-another-version",
            )
            expect.that(
                not result.ok and not result.hang,
                f"a call to a node of {what} fails",
                str(result),
                id="a-call-to-a-node-of-another-version-fails",
            )
        else:
            dropped = not answered and not ran and not routed
            expect.tolerate(
                dropped,
                "a packet whose ver is a number, or missing, is dropped",
                id="a-packet-whose-ver-is-a-number-or-missing-is-dropped",
            )
    await serves(
        expect,
        node,
        "the correct REQUEST is answered within 1 s",
        id="the-correct-request-is-answered-within-n-s",
    )


@scenario("MOL-1.09", "SHOULD", "high", basis=["M9"], roles=SERVICE)
async def node_id_conflict(broker: Moleculer, client: Client, expect: Expect) -> None:
    """nodeID conflict.

    Fault: INFO broadcast with the client's own `sender` and another `instanceID`
    Pass: Within 2 s the conflict is reported: the adapter process ends with a status other than 0, or an
    `error`/`session disconnected` event comes and the node sends no HEARTBEAT any more. Exit is not `crashed`
    in this scenario; the runner restarts the adapter. Non-strict: ignored, and a REQUEST is still answered
    and a DISCOVER still gives the own instanceID. Fail: own services replaced, hang, or half-dead node (no
    answers, heartbeats go on)
    Seen: moleculer#331; moleculer#629; moleculerpy#2; measured: moleculer 0.14.36 and 0.15.2 exit with status
    1
    """
    node = peer(broker)
    beat_s = client.heartbeat_s(1, BEAT_MOST_S)
    await joined(broker, client, heartbeat_s=beat_s, offers=[a_service({"echo": "echo"})])
    own = packets(broker, "Discover")[0].sender
    expect.exercised(
        own == NODE,
        f"the client's node has the id that it was given, not {own}",
        id=slug("the-client-s-node-has-the-id-that-it-was-given-not-{}", own),
    )
    expect.may_end("a node that meets another one with its id may end its process")
    seen, since = len(client.events), mark(broker)
    broker.impersonate(NODE)
    ended = await until(lambda: not client.alive, limit(2.0))
    if ended:
        facts = client.facts()
        status = facts.exit_code if facts is not None else None
        expect.that(
            status != 0,
            "a process that ends for a conflict has a status other than 0",
            status,
            id="a-process-that-ends-for-a-conflict-has-a-status-other-than-n",
        )
        return
    reported = [e for e in client.events[seen:] if e.event == "error" or e["what"] == "disconnected"]
    if reported:
        await asyncio.sleep(1.0)
        later = mark(broker)
        found = await came(broker, "Heartbeat", since=later, within_s=2.5 * beat_s)
        expect.that(
            not found,
            "a node that reports a conflict sends no HEARTBEAT any more",
            id="a-node-that-reports-a-conflict-sends-no-heartbeat-any-more",
        )
        return
    answer = await ask(node, "s.echo", {"n": 1})
    expect.equal(
        answer,
        {"n": 1},
        "a node that ignores a conflict still answers requests",
        id="a-node-that-ignores-a-conflict-still-answers-requests",
    )
    node.discover(NODE)
    infos = await came(broker, "Info", since=since)
    first = packets(broker, "Info")[0]
    same = [info.instanceID == first.instanceID for _, info in infos]  # type: ignore[attr-defined]
    expect.that(same and all(same), "its INFO has its own instanceID", id="its-info-has-its-own-instanceid")
    expect.tolerate(False, "the conflict is reported", id="the-conflict-is-reported")


#: What each topic gets instead of a packet; `V` stands for the client's own version.
BROKEN = (
    b"",
    b"{",
    b"[]",
    b"null",
    b"5",
    b'"text"',
    b"\xff\xfe{\x80",
    b'{"ver":"V"}',
    b'{"ver":"V","sender":"stranger"}',
    b'{"ver":"V","sender":7}',
)


def break_all(node: Node, version: str, heard: set[str]) -> int:
    """Say everything broken on each topic of a node; returns how much of it is on topics in `heard`."""
    count = 0
    for place in (*(f"{word}.{NODE}" for word in ID_TOPICS), *ALL_TOPICS):
        command, _, target = place.partition(".")
        for payload in BROKEN:
            node.send_raw(command, payload.replace(b"V", version.encode()), target)
            count += place in heard
    return count


@scenario("MOL-1.13", "MUST", "critical", basis=["M9"], variants=("mqtt",), roles=SERVICE, server=MQTT)
@scenario("MOL-1.13", variants=("redis",), roles=SERVICE, server=REDIS)
@scenario("MOL-1.13", variants=("nats",), roles=SERVICE, server=NATS)
async def broken_packets(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Broken packet.

    Fault: On each of the client's 12 topics: empty payload, `{`, `[]`, `null`, `5`, a JSON string, invalid
    UTF-8, an object with only `ver`, one with `ver` and `sender`, one with a numeric `sender`; then a correct
    REQUEST
    Pass: Process alive, the REQUEST is answered within 1 s, heartbeats go on. Log lines on stderr are
    allowed, and so are answers to packets without id, action or sender (an error RESPONSE, an INFO, a PONG)
    Seen: moleculer#984; measured: moleculer 0.14.36 and 0.15.2 survive all
    """
    node = peer(broker)
    own = client.heartbeat_s(1, BEAT_MOST_S)
    await joined(broker, client, heartbeat_s=own, offers=[a_service({"echo": "echo"})])
    version = packets(broker, "Discover")[0].ver
    since = mark(broker)
    count = break_all(node, str(version), places(subscriptions(broker)))
    delivered = [r for r in broker.journal.records(since) if r.kind in ("Msg", "Message", "Publish")]
    expect.exercised(
        0 < count <= len(delivered),
        f"{len(delivered)} of {count} broken packets were delivered",
        id="n-of-n-broken-packets-were-delivered",
    )
    await serves(
        expect,
        node,
        "a correct REQUEST is answered within 1 s",
        id="a-correct-request-is-answered-within-n-s",
    )
    await beats(broker, expect, mark(broker), limit(2 * own), "heartbeats go on", id="heartbeats-go-on")
    expect.that(client.alive, "the process is alive", id="the-process-is-alive")


@scenario("MOL-1.14", "SHOULD", "medium", basis=["M1"], roles=BOTH_WAYS)
async def topic_decides(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Topic decides the type.

    Fault: A known peer's payload that looks like a REQUEST for a served action is published on MOL.HEARTBEAT;
    a payload that looks like INFO on MOL.PING.<client>
    Pass: No action runs and no RESPONSE is sent for the first; the peer's service list is unchanged by the
    second (a PONG to the sender is right). Taking the packet as the topic's type (heartbeat refreshed) or
    dropping it are both a pass
    Seen: measured: moleculer 0.14.36 and 0.15.2 go by the topic only
    """
    node = peer(broker, services={"p": {"echo": echo}})
    await joined(broker, client, offers=[a_service({"echo": "echo"})])
    await is_answered(
        client,
        expect,
        "a call to the peer is answered",
        "p.echo",
        {"n": 1},
        id="a-call-to-the-peer-is-answered",
    )
    version = packets(broker, "Discover")[0].ver
    raw(node, "HEARTBEAT", signed(version, node.id, request_of("not a request")), "")
    info = {**info_of(node.id), "services": [], "seq": 99, "instanceID": node.core.instance}
    raw(node, "PING", signed(version, node.id, info))
    await settled(node)
    delivered = [r for r in broker.journal.records() if r.frame is not None and b"not a request" in _bytes(r)]
    expect.exercised(
        delivered,
        "the packet on the other topic was not delivered",
        id="the-packet-on-the-other-topic-was-delivered",
    )
    expect.that(
        "not a request" not in runs(client),
        "no action runs for a REQUEST on HEARTBEAT",
        id="no-action-runs-for-a-request-on-heartbeat",
    )
    answered = said(broker, "Response", where=lambda p: p.id == "not a request")
    expect.that(
        not answered, "a REQUEST on HEARTBEAT is not answered", id="a-request-on-heartbeat-is-not-answered"
    )
    result = await call(client, "p.echo", {"n": 2}, AT_ONCE_S)
    expect.ok(
        result,
        "the peer's services are unchanged by an INFO on PING",
        id="the-peer-s-services-are-unchanged-by-an-info-on-ping",
    )


def _bytes(record: Any) -> bytes:
    payload = getattr(record.frame, "payload", b"")
    return payload if isinstance(payload, bytes) else msgspec.json.encode(payload)
