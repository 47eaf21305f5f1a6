"""MOL-3 Request and response, from the caller's side."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from msgspec import UNSET

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import Moleculer
from fakebrokers.moleculer.packets import Request
from fakebrokers.moleculer.services import Context, MoleculerError
from scenarios.moleculer._steps import (
    BOTH_WAYS,
    CALLER,
    MQTT,
    NATS,
    NODE,
    OFFER,
    PEER,
    REDIS,
    TCP,
    asked,
    begin_call,
    call,
    is_answered,
    joined,
    peer,
    reachable,
    request,
    respond,
    settled,
)
from scenarios.moleculer._wire import (
    came,
    mark,
    place,
    said,
)

#: No value of a REQUEST, or one that says no.
NOTHING = (None, UNSET)


def fail(ctx: Context) -> Any:
    """An action that fails as a node of Moleculer does."""
    raise MoleculerError("bad thing", 422, "BAD", {"f": 1}, name="MoleculerClientError")


@scenario("MOL-3.01", "MUST", "critical", basis=["M5", "M10"], variants=("tcp",), roles=CALLER, server=TCP)
@scenario("MOL-3.01", variants=("mqtt",), roles=CALLER, server=MQTT)
@scenario("MOL-3.01", variants=("redis",), roles=CALLER, server=REDIS)
@scenario("MOL-3.01", variants=("nats",), roles=CALLER, server=NATS)
async def call_remote(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Call a remote action.

    Fault: Peer answers RESPONSE success with data and meta
    Pass: One REQUEST on MOL.REQ.<node>: `id` unique string; `action`, `params`, `meta` as given; `timeout`
    the call's timeout in ms (0 or null when none); `level` 1; `requestID` a string; `caller` and `parentID`
    null or absent; `stream` false, null or absent; `ver`, `sender`; for ver "5" also `headers` (object).
    Result equals `data`
    Seen: measured: moleculer 0.14.36 (v4) and 0.15.2 (v5)
    """
    node = peer(broker, services=OFFER)
    await joined(broker, client, calls_s=4.0)
    await reachable(broker, node)
    params = {"text": "hi", "list": [1, 2.5, None, True], "none": None}
    given: dict[str, Any] = {"meta": {"m": 1}} if client.takes("mol.call", "meta") else {}
    calls = [
        begin_call(client, "p.wait", params, 4.0, **given),
        begin_call(client, "p.wait", params, 4.0),
    ]
    first, second = await asked(node, 2)
    sent = said(broker, "Request")
    expect.equal(len(sent), 2, "one REQUEST for each call", id="one-request-for-each-call")
    if broker.transporter != "tcp":
        expect.equal([place(r) for r, _ in sent], [f"REQ.{PEER}"] * 2, "on REQ.<node>", id="on-req-node")
    ids = {first.id, second.id}
    expect.that(
        len(ids) == 2 and all(isinstance(id, str) and id for id in ids),
        "id is a unique text",
        ids,
        id="id-is-a-unique-text",
    )
    meta = given.get("meta", first.meta)
    expect.equal(
        (first.action, first.params, first.meta), ("p.wait", params, meta), "as given", id="as-given"
    )
    check_request(expect, first)
    respond(node, first, data={"ok": [1, "two"]})
    respond(node, second, data=None)
    value = expect.ok(await calls[0], "the call is answered", id="the-call-is-answered")
    expect.equal(value["data"], {"ok": [1, "two"]}, "the result equals data", id="the-result-equals-data")
    expect.equal(
        expect.ok(await calls[1], "null is an answer", id="null-is-an-answer")["data"],
        None,
        "the result equals data",
        id="the-result-equals-data",
    )


def check_request(expect: Expect, found: Request) -> None:
    """Demand what each REQUEST of a root call with a time-out of 4 s has to hold."""
    expect.equal(
        found.timeout, 4000, "timeout is that of the call, in ms", id="timeout-is-that-of-the-call-in-ms"
    )
    expect.equal(found.level, 1, "level is 1", id="level-is-n")
    expect.that(
        isinstance(found.requestID, str) and found.requestID,
        "requestID is a text",
        found.requestID,
        id="requestid-is-a-text",
    )
    expect.that(
        found.caller in (*NOTHING, "") and found.parentID in NOTHING,
        "caller and parentID are null or absent",
        id="caller-and-parentid-are-null-or-absent",
    )
    expect.that(
        found.stream in (False, *NOTHING),
        "stream is false, null or absent",
        found.stream,
        id="stream-is-false-null-or-absent",
    )
    expect.equal(found.sender, NODE, "sender is the node's id", id="sender-is-the-node-s-id")
    expect.that(
        found.ver in ("4", "5"), "ver is the protocol version", found.ver, id="ver-is-the-protocol-version"
    )
    if found.ver == "5":
        expect.that(
            isinstance(found.headers, dict),
            "headers is an object in version 5",
            found.headers,
            id="headers-is-an-object-in-version-n",
        )


@scenario("MOL-3.03", "MUST", "critical", basis=["M5"], roles=CALLER)
async def error_response(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Error response.

    Fault: success false with error object (name, message, code, type, data, nodeID)
    Pass: Call fails with message and code
    Seen: moleculer-go fc0dadf
    """
    peer(broker, services={"p": {"fail": fail}})
    await joined(broker, client)
    result = await call(client, "p.fail")
    expect.failed(
        result,
        ("refused",),
        "the call fails with the code of the error",
        code=422,
        id="the-call-fails-with-the-code-of-the-error",
    )
    text = result.error.text if result.error is not None else ""
    expect.that(
        "bad thing" in text,
        "the call fails with the message of the error",
        text,
        id="the-call-fails-with-the-message-of-the-error",
    )


@scenario("MOL-3.06", "MUST", "critical", basis=["M10"], roles=CALLER, needs=("concurrent",))
async def responses_reordered(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Responses reordered.

    Fault: 20 calls, answered shuffled
    Pass: Each gets its own
    """
    node = peer(broker, services=OFFER)
    await joined(broker, client)
    calls = [begin_call(client, "p.wait", {"n": n}) for n in range(20)]
    requests = await asked(node, 20)
    random.Random(306).shuffle(requests)
    for one in requests:
        respond(node, one, data={"answer": one.params["n"]})
    for number, each in enumerate(calls):
        value = expect.ok(await each, "each call is answered", id="each-call-is-answered")
        expect.equal(value["data"], {"answer": number}, "each gets its own", id="each-gets-its-own")


@scenario("MOL-3.07", "MUST", "critical", basis=["M10"], roles=CALLER)
async def call_timeout(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Call timeout.

    Fault: No answer, `timeout_ms` 1000
    Pass: Ends with kind `timeout` between 0.95 s and 1.45 s; `state.pending`, if given, is back to its value
    before; the next call is answered
    Seen: moleculer#640
    """
    node = peer(broker, services=OFFER)
    await joined(broker, client, calls_s=1.0)
    before = (await client.state())["pending"]
    result = await call(client, "p.wait", timeout_s=1.0)
    await asked(node)
    expect.failed(
        result,
        ("timeout",),
        "the call ends with kind timeout by 1.45 s",
        id="the-call-ends-with-kind-timeout-by-n-n-s",
    )
    expect.not_before(result.elapsed_ms / 1000, 0.95, "it ends at its time-out", id="it-ends-at-its-time-out")
    expect.equal(
        (await client.state())["pending"],
        before,
        "what is pending is as before",
        id="what-is-pending-is-as-before",
    )
    await is_answered(
        client, expect, "the next call is answered", "p.echo", {"n": 1}, id="the-next-call-is-answered"
    )


@scenario("MOL-3.08", "MUST", "high", basis=["M10"], roles=CALLER)
async def late_response(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Late response.

    Fault: Answer at 1.5 s
    Pass: Ignored; next call unaffected
    Seen: moleculer orphan-response metric (source)
    """
    node = peer(broker, services=OFFER)
    await joined(broker, client, calls_s=3.0)
    first = begin_call(client, "p.wait", {"n": 1}, 1.0)
    (late,) = await asked(node)
    expect.failed(
        await first, ("timeout",), "the call ends at its time-out", id="the-call-ends-at-its-time-out"
    )
    second = begin_call(client, "p.wait", {"n": 2})
    (request_,) = await asked(node, skip=1)
    await asyncio.sleep(0.4)
    respond(node, late, data="late")
    await settled(node)
    expect.that(not second.done, "the late answer is ignored", id="the-late-answer-is-ignored")
    respond(node, request_, data="second")
    value = expect.ok(await second, "the next call is answered", id="the-next-call-is-answered")
    expect.equal(
        value["data"], "second", "the next call gets its own answer", id="the-next-call-gets-its-own-answer"
    )


@scenario("MOL-3.09", "MUST", "high", basis=["M10"], roles=CALLER)
async def duplicate_response(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Duplicate response.

    Fault: dup
    Pass: One completion
    Seen: moleculer#709
    """
    node = peer(broker, services=OFFER)
    await joined(broker, client)
    first, second = begin_call(client, "p.wait", {"n": 1}), begin_call(client, "p.wait", {"n": 2})
    one, two = sorted(await asked(node, 2), key=lambda p: p.params["n"])
    respond(node, one, data="one")
    respond(node, one, data="one again")
    await settled(node)
    expect.equal(
        expect.ok(await first, "the call is answered", id="the-call-is-answered")["data"],
        "one",
        "by the first answer",
        id="by-the-first-answer",
    )
    expect.that(
        not second.done,
        "a duplicate answer completes nothing else",
        id="a-duplicate-answer-completes-nothing-else",
    )
    respond(node, two, data="two")
    expect.equal(
        expect.ok(await second, "another call is answered", id="another-call-is-answered")["data"],
        "two",
        "by its own answer",
        id="by-its-own-answer",
    )


@scenario("MOL-3.10", "MUST", "high", basis=["M10"], roles=CALLER)
async def unknown_response(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Response for unknown id.

    Fault: Inject
    Pass: Ignored
    """
    node = peer(broker, services=OFFER)
    await joined(broker, client)
    pending = begin_call(client, "p.wait")
    (wanted,) = await asked(node)
    for id in ("nobody-asked", 17, None):
        node.send("RES", NODE, id=id, meta={}, success=True, data="foreign")
    await settled(node)
    expect.that(
        not pending.done,
        "an answer with an unknown id is ignored",
        id="an-answer-with-an-unknown-id-is-ignored",
    )
    respond(node, wanted, data="own")
    expect.equal(
        expect.ok(await pending, "the call is answered", id="the-call-is-answered")["data"],
        "own",
        "by its own answer",
        id="by-its-own-answer",
    )


@scenario("MOL-3.11", "SHOULD", "medium", basis=["M9", "M10"], roles=BOTH_WAYS)
async def timeout_forwarded(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Timeout is forwarded.

    Fault: Call with `timeout_ms` 1234. Then, if the adapter knows the behaviour {"special": "nested_call"}
    (the served action calls the peer's action without a timeout of its own): REQUEST to it with timeout 1234,
    level 1, requestID R
    Pass: First REQUEST.timeout = 1234. Nested REQUEST: `timeout` > 0 and <= 1234 (a float is right), `level`
    2, `requestID` R, `parentID` = id of the incoming request, `caller` a non-empty string. An unknown special
    leaves the second half out; it does not fail the scenario
    Seen: moleculer#640; measured: 1233.86, level 2, caller = service name
    """
    node = peer(broker, services=OFFER)
    await joined(broker, client, calls_s=1.234)
    await is_answered(
        client, expect, "the call is answered", "p.echo", {"n": 1}, timeout_s=1.234, id="the-call-is-answered"
    )
    (first,) = await asked(node)
    expect.equal(first.timeout, 1234, "REQUEST has the call's time-out", id="request-has-the-call-s-time-out")
    if not client.can("late_services"):
        expect.note("the node takes no service while it runs: the second half is left out")
        return
    args = {"session": "s1", "service": "s", "actions": {"nested": {"special": "nested_call"}}}
    served = await client.op("mol.serve", 8.0, **args)
    if served.word == "unsupported":
        expect.note("the adapter has no nested_call: the second half is left out")
        return
    expect.prepared(served)
    params = {"action": "p.echo", "params": {"n": 2}}
    id = request(node, "s.nested", params, timeout=1234, requestID="the root")
    (nested,) = await asked(node, skip=1)
    fits = isinstance(nested.timeout, int | float) and 0 < round(nested.timeout, 6) <= 1234
    expect.that(
        fits,
        "a nested REQUEST has what is left of the time-out",
        nested.timeout,
        id="a-nested-request-has-what-is-left-of-the-time-out",
    )
    expect.equal(nested.level, 2, "level of a nested REQUEST is 2", id="level-of-a-nested-request-is-n")
    expect.equal(nested.requestID, "the root", "requestID is inherited", id="requestid-is-inherited")
    expect.equal(
        nested.parentID,
        id,
        "parentID is the id of the incoming request",
        id="parentid-is-the-id-of-the-incoming-request",
    )
    expect.that(
        isinstance(nested.caller, str) and nested.caller,
        "caller is a text",
        nested.caller,
        id="caller-is-a-text",
    )


@scenario("MOL-3.13", "SHOULD", "medium", basis=["M5"], roles=CALLER)
async def meta_merged(broker: Moleculer, client: Client, expect: Expect) -> None:
    """meta merged.

    Fault: RESPONSE.meta adds a key
    Pass: Visible to the caller
    """
    node = peer(broker, services=OFFER)
    await joined(broker, client)
    pending = begin_call(client, "p.wait", meta={"a": 1})
    (wanted,) = await asked(node)
    respond(node, wanted, data=None, meta={"a": 1, "b": {"c": 2}})
    meta = expect.ok(await pending, "the call is answered", id="the-call-is-answered").get("meta")
    expect.equal(
        meta,
        {"a": 1, "b": {"c": 2}},
        "the answer's meta is visible to the caller",
        id="the-answer-s-meta-is-visible-to-the-caller",
    )


@scenario("MOL-3.24", "MUST", "high", basis=["M5", "M9"], roles=CALLER, needs=("concurrent",))
async def odd_responses(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Odd RESPONSE.

    Fault: Five calls with `timeout_ms` 1000, answered: without `success`; `success` false without `error`;
    `error` a string; `error` with an unknown `name`, a string `code` and no `stack`; right id with another
    `ver`
    Pass: Each ends exactly once and by 1.45 s with an error (never a result); the fourth with the message and
    code of the peer; process alive, next call answered. Non-strict: an answer without `success` is one with
    success, for a client that may make sense of what is not by the letter (`reads_odd`)
    Seen: measured: moleculer 0.14.36 and 0.15.2 (first two and last end by timeout)
    """
    node = peer(broker, services=OFFER)
    await joined(broker, client, calls_s=1.0)
    unknown = {"name": "NobodyKnowsThis", "message": "odd one", "code": "E_ODD"}
    other = "4" if said(broker, "Discover")[0][1].ver == "5" else "5"
    answers: list[tuple[str, dict[str, Any]]] = [
        ("no success", {"success": UNSET, "data": 1}),
        ("no error", {"success": False}),
        ("a text as error", {"success": False, "error": "just text"}),
        ("an unknown error", {"success": False, "error": unknown}),
        ("another ver", {"data": 1, "ver": other}),
    ]
    calls = [begin_call(client, "p.wait", {"n": n}, 1.0) for n in range(len(answers))]
    for request_ in await asked(node, len(answers)):
        respond(node, request_, **answers[request_.params["n"]][1])
    for (name, _), each in zip(answers, calls, strict=True):
        result = await each
        expect.ended(
            result,
            f"an answer with {name}: the call ends by 1.45 s",
            id=slug("an-answer-with-{}-the-call-ends-by-n-n-s", name),
        )
        demand = expect.tolerate if name == "no success" and client.may("reads_odd") else expect.that
        demand(
            not result.ok,
            f"an answer with {name}: the call ends with an error",
            str(result),
            id=slug("an-answer-with-{}-the-call-ends-with-an-error", name),
        )
        if name == "an unknown error" and result.error is not None:
            reported = (result.code, "odd one" in result.error.text)
            expect.equal(
                reported,
                ("E_ODD", True),
                "an unknown error keeps message and code",
                id="an-unknown-error-keeps-message-and-code",
            )
    await is_answered(
        client, expect, "the next call is answered", "p.echo", {"n": 1}, id="the-next-call-is-answered"
    )


@scenario("MOL-3.26", "MUST", "high", basis=["M2", "M4"], roles=CALLER)
async def nobody_offers(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Call of something that no node offers.

    Fault: `mol.call` of an unknown service, of an unknown action of a known service, and of a known action
    with a `node` that does not exist
    Pass: Each ends within 1 s with a definite error (code 404 if it has one) and no REQUEST is published
    Seen: measured: ServiceNotFoundError 404, nothing sent (0.14.36, 0.15.2)
    """
    peer(broker, services=OFFER)
    await joined(broker, client)
    since = mark(broker)
    wanted: list[tuple[str, dict[str, str]]] = [
        ("nowhere.x", {}),
        ("p.nope", {}),
        ("p.echo", {"node": "not-there"}),
    ]
    for action, more in wanted:
        result = await call(client, action, {"n": 1}, 1.0, **more)
        what = "a node that is not there" if more else f"{action}"
        definite = result.error is not None and result.error.definite and result.code in (None, 404)
        expect.that(
            definite,
            f"a call to {what} fails for good within 1 s",
            str(result),
            id=slug("a-call-to-{}-fails-for-good-within-n-s", what),
        )
    found = await came(broker, "Request", since=since, within_s=0.2)
    expect.that(not found, "no REQUEST is published", len(found), id="no-request-is-published")
