"""MOL-1 What nodes announce, and what they make of what others announce."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import Moleculer
from fakebrokers.journal import Tap
from fakebrokers.moleculer.packets import Info
from fakebrokers.moleculer.services import Service
from scenarios.moleculer._steps import (
    BEAT_MOST_S,
    CALLER,
    NODE,
    SERVICE,
    a_service,
    asked,
    call,
    echo,
    is_answered,
    joined,
    limit,
    now,
    peer,
    serve,
    serves,
    settled,
)
from scenarios.moleculer._wire import (
    Topical,
    came,
    is_broadcast,
    mark,
    packets,
    said,
    services_in,
    when,
)
from scenarios.moleculer.sweep.legal import NEEDLESS


@scenario("MOL-1.05", "MUST", "high", basis=["M9"], roles=SERVICE)
async def info_fields(broker: Moleculer, client: Client, expect: Expect) -> None:
    """INFO fields.

    Fault: None; check every INFO of the session
    Pass: `ver` equals the protocol version of the client ("4"; "5" for 0.15) and is a string; `sender` is the
    node id; `services` a list of objects with `name`, `actions` and `events`; `ipList` a list; `hostname` and
    `instanceID` non-empty strings, `instanceID` the same in all INFO of one process; `client` with `type`,
    `version`, `langVersion`; `config` and `metadata` present. `seq` is an integer that grows when the
    services change. Non-strict: no `seq` (not in the field table, only in the example); no `ipList` or
    `hostname`, without which nodes take it
    Seen: moleculer-go 22d6db3
    """
    node = peer(broker)
    await joined(broker, client)
    for number, name in enumerate(("s", "t")):
        await serve(client, {"echo": "echo"}, name)
        wanted = ["s", "t"][: number + 1]
        reported = await came(broker, "Info", within_s=4.0, where=lambda p, w=wanted: services_in(p) == w)  # type: ignore[misc]
        expect.exercised(
            reported, "the client does not announce its services", id="the-client-tells-of-its-services"
        )
    node.discover(NODE)
    await settled(node)
    infos: list[Info] = packets(broker, "Info")
    for info in infos:
        check_info(expect, info)
    expect.equal(
        len({info.ver for info in infos}), 1, "ver is the same in all INFO", id="ver-is-the-same-in-all-info"
    )
    expect.equal(
        len({info.instanceID for info in infos}),
        1,
        "instanceID is the same in all INFO",
        id="instanceid-is-the-same-in-all-info",
    )
    if not expect.tolerate(
        all(info.seq is not UNSET for info in infos), "INFO has a seq", id="info-has-a-seq"
    ):
        return
    whole = all(isinstance(info.seq, int) and not isinstance(info.seq, bool) for info in infos)
    expect.that(whole, "seq is an integer", [info.seq for info in infos], id="seq-is-an-integer")
    seqs = {tuple(services_in(info)): info.seq for info in infos}
    expect.that(
        seqs[("s",)] < seqs[("s", "t")],
        "seq grows when the services change",
        seqs,
        id="seq-grows-when-the-services-change",
    )


def check_info(expect: Expect, info: Info) -> None:
    """Demand what each INFO has to hold."""
    expect.that(
        info.ver in ("4", "5"),
        "ver is the protocol version, as text",
        info.ver,
        id="ver-is-the-protocol-version-as-text",
    )
    expect.equal(info.sender, NODE, "sender is the node's id", id="sender-is-the-node-s-id")
    listed = isinstance(info.services, list) and all(
        isinstance(each, dict) and isinstance(each.get("name"), str) and {"actions", "events"} <= set(each)
        for each in info.services
    )
    expect.that(
        listed,
        "services is a list of objects with name, actions and events",
        info.services,
        id="services-is-a-list-of-objects-with-name-actions-and-events",
    )
    expect.tolerate(isinstance(info.ipList, list), "ipList is a list", info.ipList, id="iplist-is-a-list")
    for name in ("hostname", "instanceID"):
        value = getattr(info, name)
        demand = expect.tolerate if name in NEEDLESS else expect.that
        demand(
            isinstance(value, str) and value,
            f"{name} is a text that is not empty",
            value,
            id=slug("{}-is-a-text-that-is-not-empty", name),
        )
    client = info.client if isinstance(info.client, dict) else {}
    expect.that(
        {"type", "version", "langVersion"} <= set(client),
        "client has type, version, langVersion",
        client,
        id="client-has-type-version-langversion",
    )
    there = info.config is not UNSET and info.metadata is not UNSET
    expect.that(there, "config and metadata are present", info.more, id="config-and-metadata-are-present")


@scenario("MOL-1.06", "SHOULD", "high", basis=["M11"], roles=SERVICE)
async def info_after_services_started(broker: Moleculer, client: Client, expect: Expect) -> None:
    """INFO only after services started.

    Fault: Two services, A at once, B with a start hook of 2 s; peer sends DISCOVER every 250 ms during the
    start
    Pass: No INFO (broadcast or targeted) holds B before 1.95 s after the start of its hook (`mol.serve` or
    `connect`, whichever is later); INFO with A alone, or no answer at all, are both fine in the meantime; at
    most 2.5 s after the end of the hook a broadcast INFO with A and B
    Seen: measured: moleculer 0.14.36 and 0.15.2 answer with A only, then broadcast again
    """
    node = peer(broker)
    await joined(broker, client, offers=[a_service({"echo": "echo"}, "a")])
    begun = now()
    starting = client.begin(
        "mol.serve", 8.0, session="s1", service="b", actions={"echo": "echo"}, start_delay_ms=2000
    )
    reported: list[Topical] = []
    asked_often = 0
    while not reported and now() < begun + 2.0 + limit(2.5):
        node.discover(NODE)
        asked_often += 1
        await asyncio.sleep(0.25)
        reported = said(broker, "Info", where=lambda p: services_in(p) == ["a", "b"])
        reported = [each for each in reported if is_broadcast(each)]
    expect.ok(await starting, "the service starts", id="the-service-starts")
    early = [r for r, p in said(broker, "Info") if "b" in services_in(p)]
    expect.that(
        early, "an INFO holds both services in the end", "none", id="an-info-holds-both-services-in-the-end"
    )
    criterion = "no INFO holds a service before its start has ended"
    expect.not_before(
        when(broker, early[0]) - begun,
        1.95,
        criterion,
        id="no-info-holds-a-service-before-its-start-has-ended",
    )
    expect.exercised(
        asked_often > 4, "the peer did not ask during the start", id="the-peer-asked-during-the-start"
    )
    expect.that(
        reported,
        "an INFO broadcast holds both services within 2.5 s after the start",
        "none",
        id="an-info-broadcast-holds-both-services-within-n-n-s-after",
    )


#: What INFO may lack or have besides, and whether a node may leave such a peer out.
DEVIATIONS: Mapping[str, tuple[dict[str, Any], bool]] = {
    "extra members": ({"from_the_future": [1, {"a": None}], "services_count": 1}, False),
    "metadata null": ({"metadata": None}, False),
    "config null": ({"config": None}, False),
    "no seq": ({"seq": UNSET}, False),
    "a list of actions": ({}, False),
    "no ipList": ({"ipList": UNSET}, True),
    "no hostname": ({"hostname": UNSET}, True),
    "no client": ({"client": UNSET}, True),
}


@scenario("MOL-1.07", "MUST", "medium", basis=["M9"], roles=CALLER)
async def odd_infos(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Unknown and missing fields in INFO.

    Fault: Eight peers, each with one deviation: extra members, `metadata` null, `config` null, no `seq`,
    `actions` as [] in one service (as in the seed's example), no `ipList`, no `hostname`, no `client`; each
    offers the same action under its own node id
    Pass: For the first five: a call addressed to that node is routed and answered. For the last three the
    same, or (non-strict) the peer is left out. Never a crash, and the peers after it are still accepted
    Seen: moleculer-go d0c2a05; measured: moleculer 0.14.36 and 0.15.2 accept all eight
    """
    await joined(broker, client)
    for number, (name, (fields, may_be_left_out)) in enumerate(DEVIATIONS.items()):
        id = f"odd-{number}"
        node = peer(broker, id, {"p": {"echo": echo}}, announces=False, answers_discover=False)
        if name == "a list of actions":
            listed = {"name": "listed", "fullName": "listed", "actions": [], "events": {}}
            fields = {"services": [listed, Service("p", {"echo": echo}).info()]}
        node.send_info("", **fields)
        await settled(node)
        result = await call(client, "p.echo", {"from": name}, 3.0, node=id)
        if may_be_left_out:
            expect.ended(
                result,
                f"INFO with {name}: a call to the node ends",
                id=slug("info-with-{}-a-call-to-the-node-ends", name),
            )
            expect.tolerate(
                result.ok,
                f"INFO with {name}: the node is callable",
                str(result),
                id=slug("info-with-{}-the-node-is-callable", name),
            )
        else:
            expect.ok(
                result,
                f"INFO with {name}: a call to the node is answered",
                id=slug("info-with-{}-a-call-to-the-node-is-answered", name),
            )
            expect.equal(
                [p.params for p in await asked(node)],
                [{"from": name}],
                "it is routed to the node",
                id="it-is-routed-to-the-node",
            )


@scenario("MOL-1.11", "MUST", "high", basis=["M2"], roles=CALLER)
async def service_list_changes(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Service list changes.

    Fault: INFO seq 1 with services A and B; then INFO with the same instanceID, seq 2, and A only
    Pass: From 500 ms after the second INFO: a call to B fails (kind `refused`, code 404, or another definite
    kind) with no REQUEST on the wire; a call to A is routed and answered
    Seen: moleculer-go d0c2a05; moleculer#263
    """
    node = peer(broker, services={"a": {"echo": echo}, "b": {"echo": echo}})
    await joined(broker, client)
    await is_answered(
        client,
        expect,
        "a call to a service of the first INFO is answered",
        "b.echo",
        id="a-call-to-a-service-of-the-first-info-is-answered",
    )
    node.serve({"a": {"echo": echo}})
    await settled(node)
    await asyncio.sleep(0.5)
    since, seen = mark(broker), len(node.requests)
    result = await call(client, "b.echo")
    expect.that(
        result.error is not None and result.error.definite,
        "a call to what is gone fails for good",
        result,
        id="a-call-to-what-is-gone-fails-for-good",
    )
    sent = said(broker, "Request", since)
    expect.that(
        not sent and len(node.requests) == seen,
        "no REQUEST for what is gone",
        len(sent),
        id="no-request-for-what-is-gone",
    )
    await is_answered(
        client,
        expect,
        "a call to what is left is answered",
        "a.echo",
        id="a-call-to-what-is-left-is-answered",
    )


@scenario(
    "MOL-1.12", "SHOULD", "medium", basis=["M9"], roles=CALLER, server={"bus": {"max_payload": 8 << 20}}
)
async def large_info(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Large INFO.

    Fault: INFO of about 2 MiB with 1000 services; server announces max_payload 8 MiB (NATS). Not on the TCP
    transporter, whose limit is 1 MiB
    Pass: Within 5 s an action of the last service is callable; heartbeats of the client go on
    Seen: moleculer#765; measured: moleculer 0.14.36 and 0.15.2 take 2 034 000 bytes
    """
    node = peer(broker)
    own = client.heartbeat_s(1, BEAT_MOST_S)
    await joined(broker, client, heartbeat_s=own)
    filler = {"text": "x" * 1900}
    node.serve([Service(f"many-{number}", {"echo": echo}, settings=filler) for number in range(1000)])
    delivered = [r for r in broker.journal.select(kind="Msg", tap=Tap.SENT) if r.size > 1_900_000]
    expect.exercised(delivered, "the large INFO was not delivered", id="the-large-info-was-delivered")
    begun, since = now(), mark(broker)
    while True:
        result = await call(client, "many-999.echo", {"n": 1})
        if result.ok or now() - begun > limit(5.0):
            break
        await asyncio.sleep(0.1)
    expect.ok(
        result,
        "an action of the last service is callable within 5 s",
        id="an-action-of-the-last-service-is-callable-within-n-s",
    )
    found = await came(broker, "Heartbeat", since=since, within_s=4 * own)
    expect.that(
        found,
        "the client's heartbeats go on",
        f"none within {4 * own:g} s",
        id="the-client-s-heartbeats-go-on",
    )


@scenario("MOL-1.15", "MUST", "high", basis=["M2"], roles=SERVICE)
async def service_added_and_removed(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Service added and removed at run time.

    Fault: After start, `mol.serve` of a further service, 3 s later `mol.unserve` (if offered)
    Pass: Each time one or more INFO broadcasts within 2.5 s, `seq` higher than before, list with respectively
    without the service; a REQUEST to the new action is answered at the latest after that INFO. Many changes
    within 1 s may share one INFO
    Seen: moleculer#262; moleculer#263; measured: INFO 1.0 s after the change (0.14.36, 0.15.2)
    """
    node = peer(broker)
    await joined(broker, client, offers=[a_service({"echo": "echo"})])
    await _reported_in_time(broker, expect, ["s"], "the added service")  # the demand: it is announced
    before = packets(broker, "Info")[-1]
    await serve(client, {"echo": "echo"}, "t")
    added = await _reported_in_time(broker, expect, ["s", "t"], "the added service")
    expect.that(
        _higher(added, before),
        "seq is higher after a service was added",
        (before.seq, added.seq),
        id="seq-is-higher-after-a-service-was-added",
    )
    await serves(
        expect,
        node,
        "a REQUEST to the new action is answered",
        "t.echo",
        id="a-request-to-the-new-action-is-answered",
    )
    if not client.has("mol.unserve"):
        return
    await client.prepare("mol.unserve", session="s1", service="t")
    removed = await _reported_in_time(broker, expect, ["s"], "the removed service", since=mark(broker))
    expect.that(
        _higher(removed, added),
        "seq is higher after a service was removed",
        (added.seq, removed.seq),
        id="seq-is-higher-after-a-service-was-removed",
    )


def _higher(later: Info, earlier: Info) -> bool:
    return isinstance(later.seq, int) and isinstance(earlier.seq, int) and later.seq > earlier.seq


async def _reported_in_time(
    broker: Moleculer, expect: Expect, wanted: list[str], what: str, since: int = 0
) -> Info:
    found = await came(
        broker, "Info", since=since, within_s=limit(2.5), where=lambda p: services_in(p) == wanted
    )
    found = [each for each in found if is_broadcast(each)]
    expect.that(
        found,
        f"an INFO broadcast names {what} within 2.5 s",
        "none",
        id=slug("an-info-broadcast-tells-of-{}-within-n-n-s", what),
    )
    info: Info = found[0][1]  # type: ignore[assignment]
    return info
