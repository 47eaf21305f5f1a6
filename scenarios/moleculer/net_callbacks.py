"""NET-3.06 and 3.07 for Moleculer: event handlers, actions, and listeners of the node's own events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import Unsupported, slug
from fakebrokers.moleculer.calls import RemoteError
from fakebrokers.moleculer.faults import foreign_version
from scenarios.moleculer.subject import MoleculerSubject
from scenarios.net.callbacks import inner_ops_work, is_visible

SERVING = ("caller", "service", "listener")
BACK_S = 30.0

Attempt = Callable[[MoleculerSubject, str], Awaitable[bool]]


async def _serve(subject: MoleculerSubject, session: str, behaviour: Any) -> None:
    """The node offers ``s-SESSION.act``, and the peer knows it."""
    result = await subject.client.op(
        "mol.serve", session=session, service=f"s-{session}", actions={"act": behaviour}
    )
    if result.word == "unsupported":
        raise Unsupported(str(result))
    subject.expect.prepared(result)

    def known() -> bool:
        return any(f"s-{session}.act" in peer.actions() for peer in subject.peer.peers.values())

    subject.expect.exercised(
        await subject.until(known, 4.0),
        "the node has not announced its action",
        id="the-node-has-told-nobody-of-its-action",
    )


async def _asked(subject: MoleculerSubject, session: str, params: Any) -> Any:
    """What the peer gets for a call of it: the data, or a `RemoteError`."""
    try:
        call = subject.peer.start_call(f"s-{session}.act", params, timeout=5.0, target=f"node-{session}")
        return await asyncio.wrap_future(call)
    except RemoteError as error:
        return error


@scenario("NET-3.06", protocol="moleculer", roles=SERVING, ops=("raise_next",), timeout_s=120)
async def callbacks_that_raise(subject: MoleculerSubject, client: Client, expect: Expect) -> None:
    await subject.ready("other", "elsewhere")
    tries: dict[str, tuple[str, Attempt]] = {
        "event handler": ("message", _raising_handler),
        "action": ("message", _raising_action),
        "error listener": ("error", _raising_error_listener),
        "session listener": ("session", _raising_session_listener),
    }
    tried = 0
    for number, (kind, (callback, attempt)) in enumerate(tries.items()):
        session = f"raising-{number}"
        await subject.ready(session, f"q-{session}")
        heard, written = len(client.events), client.adapter.stderr_mark
        if not (await client.prepare("raise_next", callback=callback))["armed"]:
            continue
        tried += 1
        is_reported = await attempt(subject, session)
        expect.that(
            client.alive,
            f"{kind}: the process goes on",
            "it ended",
            id=slug("{}-the-process-lives-on", kind),
        )
        shown = lambda heard=heard, written=written: is_visible(client, heard, written)  # noqa: E731
        visible = is_reported or await subject.until(shown, 1.0)
        expect.that(
            visible,
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


async def _raising_handler(subject: MoleculerSubject, session: str) -> bool:
    queue, expect = f"q-{session}", subject.expect
    expect.prepared(await subject.subscribe(queue, session, session))
    for number in (1, 2, 3):
        got = await subject.wait_messages(number, session)
        criterion = "event handler: the next callback of that kind runs"
        expect.that(
            len(got) == number,
            criterion,
            f"{len(got)} events",
            id="event-handler-the-next-callback-of-that-kind-runs",
        )
        subject.put(queue, [b"event %d" % number])
    return False


async def _raising_action(subject: MoleculerSubject, session: str) -> bool:
    """The caller gets the error: only that makes the exception visible."""
    await _serve(subject, session, "echo")
    found = await _asked(subject, session, {"n": 1})
    refused = isinstance(found, RemoteError) and "raise_next" in str(found)
    subject.expect.that(
        refused,
        "action: what raised is answered with its error",
        found,
        id="action-what-raised-is-answered-with-its-error",
    )
    found = await _asked(subject, session, {"n": 2})
    subject.expect.equal(
        found,
        {"n": 2},
        "action: the next callback of that kind runs",
        id="action-the-next-callback-of-that-kind-runs",
    )
    return True


async def _raising_error_listener(subject: MoleculerSubject, session: str) -> bool:
    """An exception in the listener for errors has no further listener."""
    queue, expect = f"q-{session}", subject.expect
    expect.prepared(await subject.subscribe(queue, session, session))
    there = await subject.hears(session)
    for number in (1, 2):
        mark = len(subject.client.events)
        subject.faults.add(
            foreign_version("1", kind="Event", direction="out", nth=1, name=f"foreign {number}")
        )
        subject.put(queue, [b"of another protocol"])
        reported = await subject.client.event("error", 3.0, mark)
        criterion = "error listener: the next callback of that kind runs"
        expect.that(
            reported,
            criterion,
            f"no error event {number}",
            id="error-listener-the-next-callback-of-that-kind-runs",
        )
    subject.put(queue, [b"a good one"])
    got = await subject.wait_messages(there + 1, session)
    expect.equal(
        len(got),
        there + 1,
        "error listener: events are unaffected",
        id="error-listener-events-are-unaffected",
    )
    return True


async def _raising_session_listener(subject: MoleculerSubject, session: str) -> bool:
    client, expect = subject.client, subject.expect
    for number in (1, 2):
        mark = len(client.events)
        subject.broker.kill(how="rst")
        reported = await client.event("session", 5.0, mark, session=session)
        criterion = "session listener: the next callback of that kind runs"
        expect.that(
            reported,
            criterion,
            f"no event of loss {number}",
            id="session-listener-the-next-callback-of-that-kind-runs",
        )
        for name, queue in ((session, f"q-{session}"), ("other", "elsewhere")):
            works = f"session listener: {name} works after loss {number}"
            await subject.works_again(
                works,
                within_s=BACK_S,
                session=name,
                queue=queue,
                id=slug("session-listener-{}-works-after-loss-n", name),
            )
    return False


@scenario("NET-3.07", protocol="moleculer", roles=SERVING)
async def call_inside_a_callback(subject: MoleculerSubject, client: Client, expect: Expect) -> None:
    await subject.ready()
    values = [{"number": number} for number in (1, 2)]
    calls = [subject.value_made_for(value["number"])[0] for value in values]
    expect.prepared(await subject.subscribe_and_do(subject.queue, calls))
    await subject.hears()
    subject.put(subject.queue, [b"the second message"])
    got = await subject.wait_messages(2, within_s=8.0)
    expect.that(
        len(got) == 2, "the next event is delivered", f"{len(got)} came", id="the-next-event-is-delivered"
    )
    for event in await inner_ops_work(subject, 2 * len(calls)):
        found = event["result"]["data"]
        expect.equal(
            found,
            values[event["index"]],
            "the call inside an event handler has its right result",
            id="the-call-inside-an-event-handler-has-its-right-result",
        )
    await _serve(subject, "s1", {"special": "nested_call"})
    for number in (3, 4):
        params = {"action": "p.echo", "params": {"number": number}}
        found = await _asked(subject, "s1", params)
        criterion = "the call inside an action ends by its deadline with its right result"
        expect.equal(
            found, params["params"], criterion, id="the-call-inside-an-action-ends-by-its-deadline-with-its"
        )
