"""NARC-1, 2 and 3: what one project has is not another's, and what has expired is delivered to none."""

from __future__ import annotations

import asyncio

from conformance.clients.adapter.messages import same_body
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import Narconi
from fakebrokers.core.session import HangUp
from fakebrokers.faults import fault
from fakebrokers.journal import Tap
from fakebrokers.narconi.faults import HttpAnswer
from fakebrokers.narconi.frames import HttpRequest
from scenarios._common import until
from scenarios.narconi._steps import (
    ADMIN,
    CONSUMER,
    HTTP,
    PROJECT,
    PUBLISHER,
    QUEUE,
    acks,
    bodies_are,
    connected_again,
    end,
    newest,
    published,
    published_again,
    ready,
    settle,
    stored,
    take,
)

OTHER = "silver"
#: The sessions, and the projects that they are for.
SESSIONS = {"s1": PROJECT, "s2": OTHER}
#: Headers with credentials; the journal has their names only.
CREDENTIALS = ("authorization", "cookie", "proxy-authorization")
#: Messages live for so long where the document has its way.
TTL_S = 2
SHORT_LIVES = {"profile": "seed", "config": {"max_message_ttl": TTL_S}}
OLDER_S = TTL_S + 0.5


async def both_ready(broker: Narconi, client: Client) -> None:
    """A session for each project, in both of which the queue is."""
    await ready(broker, client)
    broker.create_queue(OTHER, QUEUE)
    await client.connected("s2", project=OTHER)


def bodies_in(broker: Narconi, project: str) -> list[bytes]:
    """What waits in the queue of a project."""
    return [message.payload for message in broker.messages(project, QUEUE)]


async def _posted(client: Client, expect: Expect, text: str, session: str = "s1") -> None:
    result = await client.op("narc.post", session=session, target=QUEUE, body={"text": text})
    expect.outcome(result, "acked", "each POST is acked", id="each-post-is-acked")


def _took(expect: Expect, result: Result, body: bytes | None, criterion: str, *, id: str) -> None:
    """An HTTP consume ended with this message, or with none."""
    message = expect.ok(result, criterion, id=id)["message"]
    fits = message is None if body is None else message is not None and same_body(message["body"], body)
    expect.that(fits, criterion, message, id=id)


@scenario("NARC-1.20", "MUST", "high", basis=["N19", "N20"], roles=(*ADMIN, *HTTP))
async def two_projects_over_http(broker: Narconi, client: Client, expect: Expect) -> None:
    """Two projects, one queue name.

    Fault: None; a session for each of two projects, a queue of the same name in both, everything in turns
    Pass: Each POST is stored in its own project; a take gives the own message, and `no message` where only
    the other project has one; deleting the queue of one leaves the other's, with its message
    Profile: both
    """
    for session, project in SESSIONS.items():
        await client.connected(session, project=project)
        made = await client.op("narc.ensure_queue", session=session, target=QUEUE)
        expect.ok(made, f"the queue of {project} is made", id=slug("the-queue-of-{}-is-made", project))
    for number in range(2):
        for session, project in SESSIONS.items():
            await _posted(client, expect, f"{project} {number}", session)
    for project in SESSIONS.values():
        expect.equal(
            bodies_in(broker, project),
            [f"{project} {number}".encode() for number in range(2)],
            f"what is posted to {project} is stored there",
            id=slug("what-is-posted-to-{}-is-stored-there", project),
        )
    for body in (b"silver 0", b"silver 1", None):
        result = await client.op("narc.take", session="s2", target=QUEUE)
        criterion = "a take gives the message of its own project, or none"
        _took(expect, result, body, criterion, id="a-take-gives-the-message-of-its-own-project-or-none")
    gone = await client.op("narc.delete_queue", session="s2", target=QUEUE)
    expect.ok(gone, "the queue of one project is deleted", id="the-queue-of-one-project-is-deleted")
    criterion = "the other's queue stays, with its messages"
    _took(expect, await take(client), b"gold 0", criterion, id="the-other-s-queue-stays-with-its-messages")


@scenario("NARC-1.21", "SHOULD", "high", basis=["N20"], roles=(*ADMIN, *HTTP))
async def credentials_of_a_project(broker: Narconi, client: Client, expect: Expect) -> None:
    """Credentials stay in their project.

    Fault: A gateway answers the first request of a project with `Set-Cookie`, for the path of that project
    (the server itself knows no credentials); then requests of another project, in turns with those of the
    first
    Pass: No request of the other project, which never got any, carries credentials; all work
    Profile: both (never sent by the server itself: gateway)
    """
    await both_ready(broker, client)
    answer = HttpAnswer(status=201, headers={"Set-Cookie": f"key=to-gold; Path=/v2/{PROJECT}"})
    broker.faults.add(fault(answer, kind="EnsureQueue", direction="in", nth=1))
    made = await client.op("narc.ensure_queue", session="s1", target=QUEUE)
    expect.ok(made, "an answer with a cookie is ok", id="an-answer-with-a-cookie-is-ok")
    for session in ("s1", "s2", "s1", "s2"):
        await _posted(client, expect, session, session)
        result = await client.op("narc.take", session=session, target=QUEUE)
        criterion = "each take gives its message"
        _took(expect, result, session.encode(), criterion, id="each-take-gives-its-message")
    asked = [record.frame for record in broker.journal.select(tap=Tap.RECEIVED)]
    leaked = [
        (one.target, name)
        for one in asked
        if isinstance(one, HttpRequest) and one.project == OTHER
        for name, _ in one.headers
        if name.lower() in CREDENTIALS
    ]
    expect.that(
        not leaked,
        "no request of another project carries credentials",
        leaked[:2],
        id="no-request-of-another-project-carries-credentials",
    )


@scenario("NARC-2.27", "MUST", "high", basis=["N7", "N19", "N20"], roles=PUBLISHER, revision=2)
async def two_projects_publish(broker: Narconi, client: Client, expect: Expect) -> None:
    """Two projects publish to one queue name.

    Fault: A session for each of two projects, 5 publishes of each in turns to queues of the same name; then
    the publishing connection of the first ends, and both publish again
    Pass: All are `acked`, those of the first after the end on a new connection; each is stored in its own
    project, in order
    Profile: both
    """
    await both_ready(broker, client)
    for number in range(5):
        for session, project in SESSIONS.items():
            await _published(broker, client, expect, session, f"{project} {number}")
    end(broker, _carrying(broker, PROJECT), HangUp.FIN)
    await asyncio.sleep(0.3)
    await connected_again(client)
    for session, project in SESSIONS.items():
        await _published(broker, client, expect, session, f"{project} 5")
    for project in SESSIONS.values():
        expect.equal(
            bodies_in(broker, project),
            [f"{project} {number}".encode() for number in range(6)],
            f"what is published to {project} is stored there, in order",
            id=slug("what-is-published-to-{}-is-stored-there-in-order", project),
        )


async def _published(broker: Narconi, client: Client, expect: Expect, session: str, body: str) -> None:
    result = await published_again(broker, client, body, session)
    expect.outcome(result, "acked", "each publish is acked", id="each-publish-is-acked")


def _carrying(broker: Narconi, project: str) -> str:
    """The newest publishing connection of a project."""
    upgrades = broker.journal.select(kind="WsUpgrade", tap=Tap.RECEIVED)
    found = [r for r in upgrades if isinstance(r.frame, HttpRequest) and r.frame.project == project]
    return found[-1].connection if found else newest(broker, "WsPublish")


@scenario("NARC-3.26", "MUST", "critical", basis=["N10", "N13", "N20"], roles=CONSUMER)
async def two_projects_consume(broker: Narconi, client: Client, expect: Expect) -> None:
    """Two projects consume from one queue name.

    Fault: A session for each of two projects, each consumes with ack from a queue of the same name; 2
    messages in each, so that both have the same ackIds; those of the second project are settled, then those
    of the first
    Pass: Each subscription delivers the messages of its own project only; each ack goes over the connection
    of its message: nothing of the first is acknowledged before it is settled; both queues are empty then
    Profile: both
    """
    await both_ready(broker, client)
    for project in SESSIONS.values():
        for number in range(2):
            broker.publish(project, QUEUE, f"{project} {number}".encode())
    for session, sub in (("s1", "c1"), ("s2", "c2")):
        expect.prepared(await client.subscribe(QUEUE, sub, session=session, ack=True))
    for sub, project in (("c1", PROJECT), ("c2", OTHER)):
        bodies_are(
            expect,
            await client.wait_messages(2, sub),
            [f"{project} {number}".encode() for number in range(2)],
            f"the messages of {project} are delivered, and no others",
            id=slug("the-messages-of-{}-are-surfaced-and-no-others", project),
        )
    for sub, project in (("c2", OTHER), ("c1", PROJECT)):
        waiting = broker.unacked(project, QUEUE)
        expect.equal(
            waiting,
            2,
            "nothing is acknowledged before it is settled",
            id="nothing-is-acknowledged-before-it-is-settled",
        )
        for message in client.messages(sub):
            expect.ok(await settle(client, message, sub=sub), "settle ends well", id="settle-ends-well")
        await until(lambda project=project: not broker.unacked(project, QUEUE), 2.0)  # type: ignore[misc]
        expect.equal(
            broker.unacked(project, QUEUE),
            0,
            "each ack goes over the connection of its message",
            id="each-ack-goes-over-the-connection-of-its-message",
        )
    expect.equal(len(acks(broker)), 4, "there is one ack for each", id="there-is-one-ack-for-each")


# TTL


@scenario(
    "NARC-1.22", "MUST", "medium", basis=["N4", "N19"], roles=HTTP, variants=("seed",), server=SHORT_LIVES
)
async def taken_too_late(broker: Narconi, client: Client, expect: Expect) -> None:
    """A message that has expired is not there.

    Fault: The server's TTL is 2 s. Three messages, one is taken; 2.5 s later another take, a POST, and a take
    again
    Pass: The first take gives the first message, the second one `no message`, the last one the new message:
    nothing that a client has read ahead, and nothing repeated
    Profile: `seed` (in `real` messages never expire)
    """
    await ready(broker, client)
    for number in range(3):
        await _posted(client, expect, f"old {number}")
    _took(expect, await take(client), b"old 0", "what is fresh is taken", id="what-is-fresh-is-taken")
    await asyncio.sleep(OLDER_S)
    criterion = "what has expired is not taken"
    _took(expect, await take(client), None, criterion, id="what-has-expired-is-not-taken")
    await _posted(client, expect, "new")
    criterion = "what came later is taken"
    _took(expect, await take(client), b"new", criterion, id="what-came-later-is-taken")


@scenario(
    "NARC-3.27",
    "SHOULD",
    "medium",
    basis=["N7", "N10", "N18", "N19"],
    roles=(*PUBLISHER, *CONSUMER),
    variants=("seed",),
    server=SHORT_LIVES,
    revision=2,
)
async def consumed_too_late(broker: Narconi, client: Client, expect: Expect) -> None:
    """A late consumer gets what has not expired.

    Fault: The server's TTL is 2 s. Two publishes; 2.5 s later the publishing connection ends, another publish
    on the next one, then a consumer with ack that takes longer than the TTL to settle
    Pass: All publishes `acked`; what was acked is not sent again, where it would be stored again; the
    consumer gets the last message only, with the time of its publication, and its late settle is sent
    Profile: `seed` (in `real` messages never expire)
    """
    await ready(broker, client)
    for number in range(2):
        await _published(broker, client, expect, "s1", f"old {number}")
    await asyncio.sleep(OLDER_S)
    end(broker, newest(broker, "WsPublish"), HangUp.FIN)
    await asyncio.sleep(0.3)
    await connected_again(client)
    await _published(broker, client, expect, "s1", "new")
    expect.equal(
        len(published(broker)), 3, "what was acked is not sent again", id="what-was-acked-is-not-sent-again"
    )
    expect.equal(stored(broker)[-1:], [b"new"], "the new one is stored", id="the-new-one-is-stored")
    time_ms = broker.messages(PROJECT, QUEUE)[-1].timestamp
    expect.prepared(await client.subscribe(QUEUE, ack=True))
    messages = await client.wait_messages(1)
    await asyncio.sleep(OLDER_S)
    messages = client.messages("c1")
    criterion = "the consumer gets what has not expired, and nothing else"
    bodies_are(
        expect, messages, [b"new"], criterion, id="the-consumer-gets-what-has-not-expired-and-nothing-else"
    )
    expect.that(
        messages[0].ts in (None, time_ms),
        "the time is that of the publication",
        f"{messages[0].ts}, not {time_ms}",
        id="the-time-is-that-of-the-publication",
    )
    expect.ok(await settle(client, messages[0]), "the late settle ends well", id="the-late-settle-ends-well")
    await until(lambda: acks(broker), 2.0)
    expect.equal(len(acks(broker)), 1, "the late settle is sent", id="the-late-settle-is-sent")
