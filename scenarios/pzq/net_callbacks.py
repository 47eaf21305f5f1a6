"""NET-3.06 and 3.07 for PZQ, with a queue of their own for what is published: a second fake."""

from __future__ import annotations

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import PZQ
from scenarios._common import second_fake
from scenarios.net.callbacks import inner_ops_work, is_visible
from scenarios.pzq._steps import delivered, statuses
from scenarios.pzq.subject import PzqSubject
from scenarios.subjects import ROLES


@scenario("NET-3.06", protocol="pzq", roles=ROLES, ops=("raise_next",), timeout_s=90, revision=2)
async def callbacks_that_raise(subject: PzqSubject, client: Client, expect: Expect) -> None:
    broker = subject.fake
    with second_fake(broker) as elsewhere:
        await subject.connected("other", endpoints=elsewhere.where)
        await subject.connected()
        expect.prepared(await client.subscribe(""))
        tried = 0
        for kind, attempt in (("message", _raising_message), ("error", _raising_error)):
            heard, written = len(client.events), client.adapter.stderr_mark
            if not (await client.prepare("raise_next", callback=kind))["armed"]:
                continue
            tried += 1
            await attempt(broker, subject)
            expect.that(
                client.alive,
                f"{kind}: the process goes on",
                "it ended",
                id=slug("{}-the-process-lives-on", kind),
            )
            shown = lambda heard=heard, written=written: is_visible(client, heard, written)  # noqa: E731
            visible = await subject.until(shown, 1.0)
            expect.that(
                visible,
                f"{kind}: the exception is visible",
                "no event, no line on stderr",
                id=slug("{}-the-exception-is-visible", kind),
            )
            result = await subject.publish(subject.queue, kind.encode(), session="other")
            expect.outcome(
                result,
                "acked",
                f"{kind}: other sessions are unaffected",
                id=slug("{}-other-sessions-are-unaffected", kind),
            )
            there = subject.beside(elsewhere).holds(kind.encode())
            expect.equal(
                there,
                1,
                f"{kind}: other sessions are unaffected",
                id=slug("{}-other-sessions-are-unaffected", kind),
            )
        expect.exercised(tried, "the library has no callbacks", id="the-library-has-no-callbacks")


async def _raising_message(broker: PZQ, subject: PzqSubject) -> None:
    client, expect = subject.client, subject.expect
    key = broker.publish(b"it raises")
    broker.publish(b"the next one")
    criterion = "message: the next callback of that kind runs"
    await delivered(
        client,
        expect,
        b"it raises",
        criterion="message: the first one is delivered",
        id="message-the-first-one-is-surfaced",
    )
    await delivered(
        client, expect, b"the next one", criterion=criterion, id="message-the-next-callback-of-that-kind-runs"
    )
    await subject.until(lambda: statuses(broker, key), 1.0)
    criterion = "message: what raised is not acknowledged by the library"
    expect.that(
        b"1" not in statuses(broker, key),
        criterion,
        statuses(broker, key),
        id="message-what-raised-is-not-acknowledged-by-the-library",
    )


async def _raising_error(broker: PZQ, subject: PzqSubject) -> None:
    client, expect = subject.client, subject.expect
    for number in (1, 2):
        mark = len(client.events)
        subject.bad_delivery()
        broker.publish(b"a bad one")
        reported = await client.event("error", 3.0, mark)
        expect.that(
            reported,
            "error: the next callback of that kind runs",
            f"no error event {number}",
            id="error-the-next-callback-of-that-kind-runs",
        )
    broker.publish(b"a good one")
    await delivered(
        client,
        expect,
        b"a good one",
        criterion="error: messages are unaffected",
        id="error-messages-are-unaffected",
    )


@scenario("NET-3.07", protocol="pzq", roles=ROLES, revision=2)
async def op_inside_a_callback(subject: PzqSubject, client: Client, expect: Expect) -> None:
    broker = subject.fake
    with second_fake(broker) as published:
        await subject.connected(endpoints={**broker.where, "receive": published.receive_url})
        inner = [
            {"op": op.op, "args": {"session": "s1", **op.args}, "timeout_ms": 5000}
            for op in subject.ops("", "inner")
        ]
        expect.prepared(await client.subscribe("", on_message={"mode": "event", "do": inner}))
        for body in (b"first", b"second"):
            broker.publish(body)
        got = await subject.wait_messages(2, within_s=8.0)
        expect.that(
            len(got) == 2,
            "the next message is delivered",
            f"{len(got)} came",
            id="the-next-message-is-delivered",
        )
        for event in await inner_ops_work(subject, 2 * len(inner)):
            if event["op"] == "pzq.monitor":
                there = event["result"]["values"].get("messages")
                expect.equal(
                    str(there),
                    "2",
                    "the inner pzq.monitor has its right result",
                    id="the-inner-pzq-monitor-has-its-right-result",
                )
        bodies = [message.body for message in published.messages()]
        expect.equal(
            bodies,
            2 * [(b"pending inner",)],
            "what the callbacks published is at the broker",
            id="what-the-callbacks-published-is-at-the-broker",
        )
