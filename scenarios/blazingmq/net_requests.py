"""NET-2.10, 3.02 and 3.07 for BlazingMQ: posts, whose ACKs name them, and messages known by their bodies."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

from conformance.clients.adapter.messages import body_bytes
from conformance.suite import Client, Expect, scenario
from fakebrokers.blazingmq.codes import AckStatus
from fakebrokers.blazingmq.frames import Ack, PutMessage
from scenarios.blazingmq._steps import ack_for, eventually, posts, say, sent, withhold
from scenarios.blazingmq.subject import DOMAIN, BlazingSubject
from scenarios.net.callbacks import inner_ops_work
from scenarios.subjects import PUBLISHER, ROLES

COUNT = 100
BACK_S = 30.0


@scenario("NET-2.10", protocol="blazingmq", roles=ROLES, timeout_s=120)
async def nothing_doubled(subject: BlazingSubject, client: Client, expect: Expect) -> None:
    await subject.ready(auto_reconnect=True)
    expect.prepared(await subject.subscribe_and_settle(subject.queue))
    await subject.hears()
    for number in range(3):
        mark = subject.broker.journal.last_seq
        subject.broker.kill(how="rst")
        again = lambda mark=mark: subject.subscriptions(mark)  # noqa: E731
        made = await subject.until(again, BACK_S)
        expect.that(
            made,
            f"loss {number + 1}: the subscription is made again",
            "not in 30 s",
            id="loss-n-the-subscription-is-made-again",
        )
        await subject.works_again(
            f"loss {number + 1}: a publish is acked", within_s=BACK_S, id="loss-n-a-publish-is-acked"
        )
    await asyncio.sleep(1.0)
    wanted = subject.bodies(10, "doubled")
    seen = len(subject.messages())
    subject.put(subject.queue, wanted)
    await subject.wait_messages(seen + len(wanted))
    await asyncio.sleep(0.5)
    got = [body_bytes(message.body) for message in subject.messages()]
    counts = Counter(body for body in got if body in wanted)
    once = set(counts) == set(wanted) and set(counts.values()) == {1}
    expect.that(
        once,
        "each new message is delivered exactly once",
        dict(counts),
        id="each-new-message-is-surfaced-exactly-once",
    )
    in_order = [body for body in got if body in wanted] == wanted
    expect.that(in_order, "in order", got[-10:], id="in-order")
    live = [r for r in subject.subscriptions(0) if r.connection in subject.is_open()]
    expect.equal(
        len(live),
        1,
        "each subscription exists once over all open connections",
        id="each-subscription-exists-once-over-all-open-connections",
    )
    opened = sent(subject.fake, "openQueueResponse")
    live = [r for r in opened if r.connection in subject.is_open()]
    expect.equal(
        len(live),
        1,
        "the queue is opened once over all open connections",
        id="the-queue-is-opened-once-over-all-open-connections",
    )
    expect.outcome(
        await subject.publish(subject.queue, b"at last"),
        "acked",
        "a publish then ends acked",
        id="a-publish-then-ends-acked",
    )
    expect.equal(subject.holds(b"at last"), 1, "once", id="once")
    expect.equal(
        len(subject.is_open()), 1, "no more connections than before", id="no-more-connections-than-before"
    )


@scenario("NET-3.02", protocol="blazingmq", roles=PUBLISHER, timeout_s=60)
async def hundred_posts(subject: BlazingSubject, client: Client, expect: Expect) -> None:
    broker = subject.fake
    await subject.ready()
    withhold(broker)
    mark = broker.journal.last_seq
    bodies = subject.bodies(COUNT, "at once")
    calls = [subject.begin_publish(subject.queue, body, timeout=15.0) for body in bodies]
    all_came = await eventually(lambda: len(posts(broker, since=mark)) >= COUNT, 10.0)
    expect.exercised(
        all_came, "not all posts came before the first ACK", id="not-all-posts-came-before-the-first-ack"
    )
    there: dict[bytes, PutMessage] = {message.data: message for _, message in posts(broker, since=mark)}
    expect.equal(
        set(there), set(bodies), "each message comes as it was given", id="each-message-comes-as-it-was-given"
    )
    order = list(range(COUNT))
    Random(broker.faults.plan.seed).shuffle(order)
    answers = {
        number: ack_for(broker, expect, there[bodies[number]], AckStatus.LIMIT_MESSAGES if number % 2 else 0)
        for number in order
    }
    say(broker, expect, *[Ack((answers[number],)) for number in order])
    events = len(client.events)
    for number, call in enumerate(calls):
        result = await call
        wanted = "nacked" if number % 2 else "acked"
        expect.outcome(
            result,
            wanted,
            f"post {number} ends with the result that was made for it",
            id="post-n-ends-with-the-result-that-was-made-for-it",
        )
        shown = (result.value or {}).get("meta", {}).get("guid") if result.ok else None
        if shown is not None:
            guid = answers[number].guid.hex().upper()
            expect.equal(
                shown,
                guid,
                f"post {number} has the GUID that was made for it",
                id="post-n-has-the-guid-that-was-made-for-it",
            )
    await asyncio.sleep(0.2)
    extra = [event for event in client.events[events:] if event.event in ("outcome", "error")]
    expect.that(not extra, "each op ends exactly once", extra[:1], id="each-op-ends-exactly-once")


@scenario("NET-3.07", protocol="blazingmq", roles=ROLES)
async def post_and_confirm_inside_a_callback(subject: BlazingSubject, client: Client, expect: Expect) -> None:
    await subject.ready()
    subject.add_queue("inner")
    await subject.open("inner", "s1", subject.prepares, 5.0)
    posting = [op for op, _ in subject.inner_ops("inner")]
    expect.prepared(await subject.subscribe_and_do(subject.queue, posting))
    subject.put(subject.queue, [b"the second message"])
    got = await subject.wait_messages(2, within_s=12.0)
    expect.that(
        len(got) == 2, "the next message is delivered", f"{len(got)} came", id="the-next-message-is-delivered"
    )
    await inner_ops_work(subject, 4)
    expect.equal(
        subject.holds(b"inner", "inner"),
        2,
        "what the callbacks published is at the broker",
        id="what-the-callbacks-published-is-at-the-broker",
    )
    confirmed = await subject.until(lambda: not subject.fake.messages(DOMAIN + subject.queue), 2.0)
    expect.that(
        confirmed,
        "what the callbacks confirmed is gone at the broker",
        "it is still there",
        id="what-the-callbacks-confirmed-is-gone-at-the-broker",
    )
