"""NET-3 Callbacks: they may raise, they may run ops, and there may be none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from conformance.clients.adapter.messages import Event
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers.faults import hold
from scenarios._common import UNHANDLED, maybe_reconnecting
from scenarios.subjects import PUBLISHER, ROLES, Subject


@scenario(
    "NET-3.06",
    "MUST",
    "critical",
    basis=["X10"],
    needs=["callback_raise"],
    roles=ROLES,
    ops=("raise_next",),
    timeout_s=90,
)
async def callbacks_that_raise(subject: Subject, client: Client, expect: Expect) -> None:
    """Exception in each callback kind.

    Fault: One callback of each kind that the library has (`raise_next`: message, confirm, session, error)
    raises (session: an rst)
    Pass: Process alive; the next callback of that kind runs; the exception is visible (error event, log or
    stderr line); other sessions and messages unaffected; the message whose callback raised is not
    acknowledged by the library
    Seen: stream-rust-client#314; stream-dotnet-client#298
    """
    await subject.ready("other", "elsewhere", **maybe_reconnecting(client))
    tries: dict[str, Callable[[Subject, str], Awaitable[None]]] = {
        "message": _raising_message,
        "confirm": _raising_confirm,
        "session": _raising_session,
    }
    if client.can("crc"):
        tries["error"] = _raising_error
    tried = 0
    for kind, attempt in tries.items():
        await subject.ready(kind, f"q-{kind}", **maybe_reconnecting(client))
        heard, written = len(client.events), client.adapter.stderr_mark
        armed = await client.prepare("raise_next", callback=kind)
        if not armed["armed"]:
            continue
        tried += 1
        await attempt(subject, kind)
        expect.that(
            client.alive,
            f"{kind}: the process goes on",
            "it ended",
            id=slug("{}-the-process-lives-on", kind),
        )
        shown = lambda heard=heard, written=written: is_visible(client, heard, written)  # noqa: E731
        visible = await subject.until(shown, 1.0)
        expect.that(
            visible or kind == "error",
            f"{kind}: the exception is visible",
            "no event, no line on stderr",
            id=slug("{}-the-exception-is-visible", kind),
        )
        result = await subject.publish("elsewhere", kind.encode(), session="other")
        expect.outcome(
            result,
            "acked",
            f"{kind}: other sessions are unaffected",
            id=slug("{}-other-sessions-are-unaffected", kind),
        )
    expect.exercised(tried, "the library has no callbacks", id="the-library-has-no-callbacks")


def is_visible(client: Client, heard: int, written: int) -> bool:
    """Whether a callback's exception shows since so many events and so much on stderr."""
    reported = any(event.event == "error" for event in client.events[heard:])
    return reported or "raise_next" in client.adapter.stderr(written)


async def _raising_message(subject: Subject, session: str) -> None:
    queue, expect = f"q-{session}", subject.expect
    expect.prepared(await subject.subscribe(queue, session, session))
    mark = subject.broker.journal.last_seq
    for number in (1, 2, 3):
        got = await subject.wait_messages(number, session)
        expect.that(
            len(got) == number,
            "message: the next callback of that kind runs",
            f"{len(got)} messages",
            id="message-the-next-callback-of-that-kind-runs",
        )
        subject.put(queue, [b"message %d" % number])
    settled = subject.settled(mark)
    expect.that(
        not settled,
        "message: the library acknowledges none whose callback raised",
        settled[:1],
        id="message-the-library-acknowledges-none-whose-callback-raised",
    )


async def _raising_confirm(subject: Subject, session: str) -> None:
    mark = len(subject.client.events)
    for number in (1, 2):
        call = subject.begin_publish(f"q-{session}", b"%d" % number, session=session, wait=False)
        result = await call
        subject.expect.ok(result, f"confirm: publish {number} is taken", id="confirm-publish-n-is-taken")
        if number == 2:
            reported = await subject.reported_outcome(result, mark)
            subject.expect.that(
                reported,
                "confirm: the next callback of that kind runs",
                "no outcome",
                id="confirm-the-next-callback-of-that-kind-runs",
            )


async def _raising_session(subject: Subject, session: str) -> None:
    client, expect = subject.client, subject.expect
    for number in (1, 2):
        mark = len(client.events)
        subject.broker.kill(how="rst")
        reported = await client.event("session", 5.0, mark, session=session)
        expect.that(
            reported,
            "session: the next callback of that kind runs",
            f"no event of loss {number}",
            id="session-the-next-callback-of-that-kind-runs",
        )
        for name, queue in ((session, f"q-{session}"), ("other", "elsewhere")):
            if not client.reconnects("producer"):
                await subject.connected(name, queue)
            await subject.works_again(
                f"{name} works after loss {number}",
                within_s=30.0,
                session=name,
                queue=queue,
                id=slug("{}-works-after-loss-n", name),
            )


async def _raising_error(subject: Subject, session: str) -> None:
    queue, client = f"q-{session}", subject.client
    subject.expect.prepared(await subject.subscribe(queue, session, session))
    await subject.hears(session)
    for number in (1, 2):
        mark = len(client.events)
        subject.bad_delivery()
        subject.put(queue, [b"a bad one"])
        reported = await client.event("error", 3.0, mark)
        subject.expect.that(
            reported,
            "error: the next callback of that kind runs",
            f"no error event {number}",
            id="error-the-next-callback-of-that-kind-runs",
        )


@scenario("NET-3.07", "SHOULD", "high", basis=["X10"], needs=["reentrant"], roles=ROLES)
async def op_inside_a_callback(subject: Subject, client: Client, expect: Expect) -> None:
    """Op called inside a callback.

    Fault: None; the message callback runs the op and waits for it
    Pass: Each inner op ends by its deadline with its right result; the next message is delivered
    Seen: blazingmq-sdk-python 1099a3c; stream-go-client#394
    """
    await subject.ready()
    subject.add_queue("inner")
    chosen = subject.inner_ops("inner")
    expect.prepared(await subject.subscribe_and_do(subject.queue, [op for op, _ in chosen]))
    await subject.hears()
    subject.put(subject.queue, [b"the second message"])
    got = await subject.wait_messages(2, within_s=8.0)
    expect.that(
        len(got) == 2, "the next message is delivered", f"{len(got)} came", id="the-next-message-is-delivered"
    )
    for event in await inner_ops_work(subject, 2 * len(chosen)):
        value = chosen[event["index"]][1]
        if value is not None:
            expect.equal(
                event["result"],
                value,
                f"the inner {event['op']} has its right result",
                id=slug("the-inner-{}-has-its-right-result", event["op"]),
            )
    copies = 2 * sum(value is None for _, value in chosen)
    expect.equal(
        subject.holds(b"inner", "inner"),
        copies,
        "what the callbacks published is at the broker",
        id="what-the-callbacks-published-is-at-the-broker",
    )


async def inner_ops_work(subject: Subject, count: int) -> list[Event]:
    """So many ops inside of callbacks end well; returns how."""
    client, expect = subject.client, subject.expect

    def done() -> list[Event]:
        return [event for event in client.events if event.event == "done"]

    await subject.until(lambda: len(done()) >= count, 8.0)
    expect.equal(
        len(done()), count, "each inner op ends by its deadline", id="each-inner-op-ends-by-its-deadline"
    )
    for event in done():
        expect.that(
            event["ok"],
            f"the inner {event['op']} works",
            event["error"],
            id=slug("the-inner-{}-works", event["op"]),
        )
    return done()


@scenario("NET-3.08", "MUST", "high", basis=["X10"], roles=PUBLISHER, timeout_s=60, process=True)
async def no_outcry(subject: Subject, client: Client, expect: Expect) -> None:
    """No unhandled exception output.

    Fault: Three runs with no caller waiting (`wait` false, no listener for session and error events): (a) rst
    with a publish and a request pending, (b) a refusal, (c) one malformed frame of the protocol's family;
    then 2 s idle
    Pass: Process alive and still answering `state`; stderr has no line with `unhandled`, `uncaught`, `panic`
    or `never retrieved`
    Seen: measured: stream-js-client 1.0.0 (P-32, P-33); stream-js-client#245
    """
    written = client.adapter.stderr_mark
    for name in ("a", "b", "c"):
        await subject.ready(name, name, listen=False)
    mark = subject.broker.journal.last_seq
    subject.refuse_publishes()
    await subject.begin_publish("b", b"refused", session="b", wait=False)
    refused = await expect.reached(
        subject.broker,
        "nothing was published",
        kind=subject.publishing,
        since=mark,
        id="nothing-was-published",
    )
    await asyncio.sleep(0.3)
    mark = subject.broker.journal.last_seq
    await subject.begin_publish("c", b"malformed", session="c", wait=False)
    found = await expect.reached(
        subject.broker,
        "nothing was published",
        kind=subject.publishing,
        since=mark,
        id="nothing-was-published",
    )
    subject.broker.say_raw(found[0].connection, subject.malformed())
    await asyncio.sleep(0.3)
    subject.broker.faults.add(hold(direction="out", spare=("heartbeat",), name="pending"))
    await subject.begin_publish("a", b"lost", session="a", wait=False)
    requests = [subject.begin(op, 3.0, "a") for op in subject.ops("a")[1:2]]
    await asyncio.sleep(0.3)
    subject.broker.kill(how="rst")
    await asyncio.sleep(2.0)
    for name in ("a", "b", "c"):
        expect.ended(
            await client.op("state", 5.0, session=name),
            "the process is alive and still answers state",
            id="the-process-is-alive-and-still-answers-state",
        )
    text = client.adapter.stderr(written)
    lines = [line for line in text.splitlines() if any(word in line.lower() for word in UNHANDLED)]
    expect.that(
        not lines,
        "stderr has no line of an unhandled error",
        lines[:2],
        id="stderr-has-no-line-of-an-unhandled-error",
    )
    expect.that(client.alive, "the process is alive", "it ended", id="the-process-is-alive")
    for request in requests:
        await request
    expect.exercised(refused, "nothing was refused", id="nothing-was-refused")
