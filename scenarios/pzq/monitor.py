"""PZQ-3 Monitor: its reply, and replies that are none."""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import Violated, slug
from fakebrokers import PZQ
from fakebrokers.faults import rewrite
from fakebrokers.journal import Tap
from fakebrokers.pzq.faults import garbled_monitor
from fakebrokers.pzq.frames import MonitorRequest
from scenarios.pzq._steps import MONITOR

REPLY = "messages: 0\nmessages_inflight: 0\ndb_size: 400128\n"


async def ask(client: Client) -> Result:
    """One question to the monitor."""
    return await client.op("pzq.monitor", 3.0, session="s1")


async def values(client: Client, expect: Expect, criterion: str, *, id: str) -> dict[str, Any]:
    """What the client made of a reply that it has to understand."""
    value = expect.ok(await ask(client), criterion, id=id)
    found = value.get("values") if isinstance(value, dict) else None
    if not isinstance(found, dict):
        raise Violated(criterion, f"the result has no map of values: {value!r}", id=id)
    return found


@scenario("PZQ-3.01", "MUST", "medium", basis=["P12"], roles=MONITOR)
@scenario("PZQ-3.01", variants=("seed",), roles=MONITOR, server={"profile": "seed"})
async def monitor_request(broker: PZQ, client: Client, expect: Expect) -> None:
    """Monitor request.

    Fault: None; one request
    Pass: Last frame received is exactly `MONITOR`; result map has all six keys as sent, integer values
    (decimal strings: non-strict), no empty key
    Profile: both, run in each: `real` = keys messages, messages_inflight, db_size, inflight_db_size, syncs,
    expired_messages and a newline at the end; `seed` = messages_in_flight, in_flightdb_size and none
    """
    broker.publish(b"a message")
    await client.connected()
    found = await values(
        client, expect, "the monitor's reply is understood", id="the-monitor-s-reply-is-understood"
    )
    requests = [r.frame for r in broker.journal.select(kind="MonitorRequest", tap=Tap.RECEIVED)]
    expect.exercised(requests, "no request came", id="no-request-came")
    request = requests[-1]
    assert isinstance(request, MonitorRequest)
    expect.equal(
        request.command,
        b"MONITOR",
        "the last part that is sent is exactly MONITOR",
        id="the-last-part-that-is-sent-is-exactly-monitor",
    )
    wanted = broker.statistics
    expect.equal(
        set(found),
        set(wanted),
        "all six keys are there as they were sent, and no empty one",
        id="all-six-keys-are-there-as-they-were-sent-and-no-empty-one",
    )
    expect.equal(
        {key: int(value) for key, value in found.items()}, wanted, "with their values", id="with-their-values"
    )
    numbers = all(isinstance(value, int) for value in found.values())
    expect.tolerate(numbers, "the values are integers", str(found), id="the-values-are-integers")


@scenario("PZQ-3.02", "SHOULD", "medium", basis=["P12"], roles=MONITOR)
async def unknown_keys(broker: PZQ, client: Client, expect: Expect) -> None:
    """Monitor keys unknown or missing.

    Fault: Extra lines, other key spelling (messages_in_flight / messages_inflight)
    Pass: Unknown keys kept or ignored; no crash
    Seen: seed and source spell the keys differently
    """
    await client.connected()
    text = "uptime: 5\nmessages: 3\nmessages_in_flight: 1\nmessages_inflight: 1\n"
    broker.faults.add(garbled_monitor(text, nth=1, scope="run"))
    found = await values(
        client, expect, "unknown keys are kept or ignored", id="unknown-keys-are-kept-or-ignored"
    )
    expect.equal(str(found.get("messages")), "3", "the known ones are there", id="the-known-ones-are-there")
    await values(client, expect, "the next request works", id="the-next-request-works")


@scenario("PZQ-3.03", "SHOULD", "low", basis=["P12"], roles=MONITOR, revision=2)
async def colons_and_blanks(broker: PZQ, client: Client, expect: Expect) -> None:
    """Values with colon and blanks.

    Fault: Extra lines "node: tcp://a:1", "load: 7: 8" and "plain:5"
    Pass: Split at the first colon, blanks around the value removed: node = tcp://a:1, load = 7: 8; no crash
    on the value that is no integer. plain = 5 is missing: non-strict, the daemon writes a blank after each
    colon
    Profile: both
    Seen: PHP client splits at ': ' (source)
    """
    await client.connected()
    broker.faults.add(garbled_monitor(f"{REPLY}node: tcp://a:1\nload: 7: 8\nplain:5\n"))
    found = await values(
        client,
        expect,
        "values that are no integers are no trouble",
        id="values-that-are-no-integers-are-no-trouble",
    )
    expect.equal(
        [found.get("node"), found.get("load")],
        ["tcp://a:1", "7: 8"],
        "a line is split at the first colon",
        id="a-line-is-split-at-the-first-colon",
    )
    expect.tolerate(
        str(found.get("plain")) == "5",
        "a blank after the colon is not needed",
        str(found),
        id="a-blank-behind-the-colon-is-not-needed",
    )


@scenario("PZQ-3.04", "SHOULD", "low", basis=["P12"], roles=MONITOR)
async def line_ends(broker: PZQ, client: Client, expect: Expect) -> None:
    """Trailing newline and empty lines.

    Fault: Reply with no newline, one (the daemon), two at the end
    Pass: Same map three times; no empty key
    Profile: both
    """
    await client.connected()
    found = []
    for end in ("", "\n", "\n\n"):
        broker.faults.add(garbled_monitor(REPLY.rstrip("\n") + end, scope="run", name="reply"))
        found.append(
            await values(
                client,
                expect,
                f"a reply that ends with {end!r} is understood",
                id=slug("a-reply-that-ends-with-{}-is-understood", f"{end!r}"),
            )
        )
        broker.faults.clear()
    expect.that(
        "" not in found[0] | found[1] | found[2], "there is no empty key", found, id="there-is-no-empty-key"
    )
    expect.that(
        found[0] == found[1] == found[2],
        "the map is the same three times",
        found,
        id="the-map-is-the-same-three-times",
    )
    expect.equal(len(found[0]), 3, "all lines are in it", id="all-lines-are-in-it")


@scenario("PZQ-3.08", "SHOULD", "medium", basis=["P12"], roles=MONITOR)
async def no_list(broker: PZQ, client: Client, expect: Expect) -> None:
    """Monitor reply that is no list.

    Fault: One reply each: "hello"; empty; "db_size:"; bytes 0xFF; two frames. Then a good one
    Pass: Error `protocol`, or the map of what could be read; no crash; the good reply is read by the next
    request on the same session
    Profile: both
    """
    await client.connected()
    replies: list[dict[str, Any]] = [
        {"text": b"hello"},
        {"text": b""},
        {"text": b"db_size:"},
        {"text": b"\xff"},
        {"extra": (b"more",)},
    ]
    for fields in replies:
        broker.faults.add(rewrite(fields, role="response", scope="run", name="reply"))
        result = await ask(client)
        criterion = f"a reply with {fields} is an error `protocol`, or what could be read of it"
        if result.ok:
            value = result.value if isinstance(result.value, dict) else {}
            expect.that(
                isinstance(value.get("values"), dict),
                criterion,
                str(result),
                id=slug("a-reply-with-{}-is-an-error-protocol-or-what-could-be-read-of-it", fields),
            )
        else:
            expect.failed(
                result,
                ("protocol",),
                criterion,
                id=slug("a-reply-with-{}-is-an-error-protocol-or-what-could-be-read-of-it", fields),
            )
        broker.faults.clear()
    found = await values(
        client,
        expect,
        "the good reply after them is read on the same session",
        id="the-good-reply-behind-them-is-read-on-the-same-session",
    )
    expect.equal(set(found), set(broker.statistics), "and complete", id="and-complete")
