"""MOL-3 Request and response, from the side of the service; and what both sides carry."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import UNSET

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import Moleculer
from fakebrokers.journal import Tap
from fakebrokers.moleculer.node import Node
from scenarios.moleculer._steps import (
    BOTH_WAYS,
    MQTT,
    NATS,
    NODE,
    PEER,
    REDIS,
    SERVICE,
    TCP,
    a_service,
    ask,
    echo,
    is_answered,
    joined,
    met,
    now,
    peer,
    reachable,
    request,
    serves,
    settled,
)
from scenarios.moleculer._wire import (
    came,
    mark,
    place,
    said,
    services_in,
    when,
)


@scenario("MOL-3.02", "MUST", "critical", basis=["M5"], variants=("tcp",), roles=SERVICE, server=TCP)
@scenario("MOL-3.02", variants=("mqtt",), roles=SERVICE, server=MQTT)
@scenario("MOL-3.02", variants=("redis",), roles=SERVICE, server=REDIS)
@scenario("MOL-3.02", variants=("nats",), roles=SERVICE, server=NATS)
async def serve_action(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Serve an action.

    Fault: Send REQUEST
    Pass: RESPONSE to MOL.RES.<sender>, same id, success true, data
    """
    node = peer(broker)
    await joined(broker, client, offers=[a_service({"echo": "echo", "fixed": {"return": [1, "two", None]}})])
    await reachable(broker, node)
    for action, wanted in (("s.echo", {"n": 1}), ("s.fixed", [1, "two", None])):
        id = request(node, action, {"n": 1})
        found = await came(broker, "Response", where=lambda p, id=id: p.id == id)  # type: ignore[misc]
        expect.that(
            found,
            "the REQUEST is answered with its id within 1 s",
            "no RESPONSE",
            id="the-request-is-answered-with-its-id-within-n-s",
        )
        await settled(node)
        found = said(broker, "Response", where=lambda p, id=id: p.id == id)  # type: ignore[misc]
        expect.equal(len(found), 1, "one RESPONSE", id="one-response")
        if broker.transporter != "tcp":
            expect.equal(place(found[0][0]), f"RES.{PEER}", "on RES.<sender>", id="on-res-sender")
        answer: Any = found[0][1]
        expect.equal(
            (answer.success, answer.data),
            (True, wanted),
            "success true, and the data",
            id="success-true-and-the-data",
        )


@scenario("MOL-3.04", "MUST", "critical", basis=["M5"], roles=SERVICE)
async def error_in_action(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Error in served action.

    Fault: Action throws
    Pass: RESPONSE success false with error.message; node alive
    """
    node = peer(broker)
    thrown = {"message": "out of tea", "code": 418, "type": "TEAPOT"}
    actions = {"bad": {"throw": thrown}, "plain": {"throw": {"message": "just so", "plain": True}}}
    await joined(broker, client, offers=[a_service({"echo": "echo", **actions})])
    for action, message in (("s.bad", "out of tea"), ("s.plain", "just so")):
        id = request(node, action)
        answers = await came(broker, "Response", where=lambda p, id=id: p.id == id)  # type: ignore[misc]
        expect.that(
            answers,
            "an action that throws is answered",
            "no RESPONSE",
            id="an-action-that-throws-is-answered",
        )
        answer: Any = answers[0][1]
        expect.equal(answer.success, False, "success is false", id="success-is-false")
        error = answer.error if isinstance(answer.error, dict) else {}
        expect.equal(error.get("message"), message, "error has the message", id="error-has-the-message")
    await serves(expect, node, "the node is alive", id="the-node-is-alive")


@scenario("MOL-3.05", "MUST", "high", basis=["M5"], roles=SERVICE)
async def unknown_action(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Unknown action.

    Fault: REQUEST for an action that is not there, in a known and in an unknown service
    Pass: Within 1 s one RESPONSE with the id, `success` false, `data` null or absent, `error` an object with
    non-empty `name` and `message`; node alive. Non-strict: `code` other than 404. For ver "5" `headers` may
    be null
    Seen: moleculer-go 1e789d2; measured: ServiceNotFoundError 404 (0.14.36, 0.15.2)
    """
    node = peer(broker)
    await joined(broker, client, offers=[a_service({"echo": "echo"})])
    for action in ("s.nope", "nowhere.x"):
        id = request(node, action, {"n": 1})
        await came(broker, "Response", where=lambda p, id=id: p.id == id)  # type: ignore[misc]
        await settled(node)
        found = said(broker, "Response", where=lambda p, id=id: p.id == id)  # type: ignore[misc]
        expect.equal(
            len(found),
            1,
            "one RESPONSE for an unknown action within 1 s",
            id="one-response-for-an-unknown-action-within-n-s",
        )
        answer: Any = found[0][1]
        expect.equal(answer.success, False, "success is false", id="success-is-false")
        expect.that(
            answer.data in (None, UNSET), "data is null or absent", answer.data, id="data-is-null-or-absent"
        )
        error = answer.error if isinstance(answer.error, dict) else {}
        named = error.get("name") and error.get("message")
        expect.that(
            named, "error has a name and a message", answer.error, id="error-has-a-name-and-a-message"
        )
        expect.tolerate(error.get("code") == 404, "the code is 404", error.get("code"), id="the-code-is-n")
    await serves(expect, node, "the node is alive", id="the-node-is-alive")


@scenario("MOL-3.12", "MUST", "medium", basis=["M9"], roles=SERVICE)
async def params_missing(broker: Moleculer, client: Client, expect: Expect) -> None:
    """params missing.

    Fault: REQUEST to `echo` without `params`; with `params` null; with only id, action, ver and sender
    Pass: Each is answered with success true within 1 s; `data` is absent, null or {}; no crash. Non-strict:
    the last one, which lacks what the field table requires, is answered with an error
    Seen: measured: moleculer 0.14.36 and 0.15.2 omit data / give null
    """
    node = peer(broker)
    await joined(broker, client, offers=[a_service({"echo": "echo"})])
    for name in ("no params", "params null", "id and action only"):  # one by one: what ends it has a name
        if name == "id and action only":
            node.send("REQ", NODE, id="bare", action="s.echo")
            id = "bare"
        else:
            id = request(node, "s.echo", UNSET if name == "no params" else None)
        found = await came(broker, "Response", where=lambda p, id=id: p.id == id)  # type: ignore[misc]
        expect.that(
            found,
            f"a REQUEST with {name} is answered within 1 s",
            "no RESPONSE",
            id=slug("a-request-with-{}-is-answered-within-n-s", name),
        )
        answer: Any = found[0][1]
        if id == "bare" and answer.success is False:
            expect.tolerate(False, "a REQUEST that lacks more is carried out", answer, id="it-is-carried-out")
            continue
        expect.equal(
            answer.success,
            True,
            f"a REQUEST with {name}: success is true",
            id=slug("a-request-with-{}-success-is-true", name),
        )
        expect.that(
            answer.data in (None, UNSET, {}),
            f"a REQUEST with {name}: no data",
            answer.data,
            id=slug("a-request-with-{}-no-data", name),
        )


def deep(levels: int) -> Any:
    """Objects nested so many levels deep."""
    found: Any = "ground"
    for _ in range(levels):
        found = {"in": found}
    return found


CONTENTS: dict[str, Any] = {
    "emoji and surrogate pairs": {"text": "😀 \U0001f468\u200d\U0001f469 é ü ß \u2028 \u0000", "😀": "key"},
    "50 levels": deep(50),
    "900 KiB": {"text": "x" * 900 * 1024},
    "2 MiB": {"text": "é" * 1024 * 1024},
}


@scenario("MOL-3.14", "MUST", "medium", basis=["M9"], variants=("mqtt",), roles=BOTH_WAYS, server=MQTT)
@scenario("MOL-3.14", variants=("redis",), roles=BOTH_WAYS, server=REDIS)
@scenario("MOL-3.14", variants=("nats",), roles=BOTH_WAYS, server={**NATS, "bus": {"max_payload": 8 << 20}})
async def large_and_odd_params(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Unicode, deep and large params.

    Fault: Emoji and surrogate pairs, depth 50, 900 KiB of JSON; then 2 MiB with max_payload 8 MiB announced
    (NATS) - not on the TCP transporter; both directions (call and serve)
    Pass: Equal on the other side (SHA-256 of the canonical form)
    Seen: moleculer-go 2f1fc7cb; measured: 2 MiB each way, moleculer 0.14.36 and 0.15.2
    """
    node = peer(broker, services={"p": {"echo": echo}})
    await joined(broker, client, offers=[a_service({"echo": "echo"})])
    for name, params in CONTENTS.items():
        data = await is_answered(
            client,
            expect,
            f"{name}: a call is answered",
            "p.echo",
            params,
            id=slug("{}-a-call-is-answered", name),
        )
        expect.that(
            node.requests[-1].params == params,
            f"{name}: params are equal at the peer",
            id=slug("{}-params-are-equal-at-the-peer", name),
        )
        expect.that(data == params, f"{name}: the result is equal", id=slug("{}-the-result-is-equal", name))
        found = await ask(node, "s.echo", params, 5.0)
        expect.that(
            found == params,
            f"{name}: what is served is equal",
            str(found)[:200],
            id=slug("{}-what-is-served-is-equal", name),
        )


#: What JSONExt writes in front of values that JSON does not have.
TAGGED = ("[[DT]]123", "[[BI]]5", "[[MP]]{", "[[BF]]AA==", "[[ES]]x", "[[DA]]123", "[[")


@scenario("MOL-3.15", "SHOULD", "medium", basis=["M9"], roles=BOTH_WAYS)
async def strings_like_extensions(broker: Moleculer, client: Client, expect: Expect) -> None:
    """String that looks like an extension.

    Fault: With serializer JSON, and with every other serializer that the adapter offers (JSONExt only exists
    in 0.15): the plain strings "[[DT]]123", "[[BI]]5", "[[MP]]{", "[[BF]]AA==", "[[ES]]x", "[[DA]]123" and
    "[[" as params and as data
    Pass: Equal, still strings
    Seen: moleculer#1348; measured: moleculer 0.15.2 JSON and JSONExt keep all of them
    """
    serializers = list(dict.fromkeys(["JSON", *client.hello.serializers]))
    nodes: dict[str, Node] = {}
    for name in serializers:
        nodes[name] = peer(broker, f"{PEER}-{name}", {"p": {"echo": echo}}, namespace=name, serializer=name)
        await joined(
            broker, client, name, namespace=name, serializer=name, offers=[a_service({"echo": "echo"})]
        )
    for name, node in nodes.items():
        for text in TAGGED:
            data = await is_answered(
                client,
                expect,
                f"{name}: a call is answered",
                "p.echo",
                {"t": text},
                session=name,
                id=slug("{}-a-call-is-answered", name),
            )
            expect.equal(
                node.requests[-1].params,
                {"t": text},
                f"{name}: params are still the text",
                id=slug("{}-params-are-still-the-text", name),
            )
            expect.equal(
                data,
                {"t": text},
                f"{name}: data are still the text",
                id=slug("{}-data-are-still-the-text", name),
            )
            expect.equal(
                await ask(node, "s.echo", {"t": text}),
                {"t": text},
                f"{name}: served as the text",
                id=slug("{}-served-as-the-text", name),
            )


@scenario("MOL-3.16", "SHOULD", "low", basis=["M9"], roles=BOTH_WAYS)
async def dotted_keys(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Dotted keys.

    Fault: {"a.b":1}
    Pass: Equal
    Seen: moleculer-go fd9f9b0
    """
    node = peer(broker, services={"p": {"echo": echo}})
    await joined(broker, client, offers=[a_service({"echo": "echo"})])
    params = {"a.b": 1, "a": {"b.c": 2}}
    data = await is_answered(client, expect, "a call is answered", "p.echo", params, id="a-call-is-answered")
    expect.equal(
        node.requests[-1].params, params, "params are equal at the peer", id="params-are-equal-at-the-peer"
    )
    expect.equal(data, params, "the result is equal", id="the-result-is-equal")
    expect.equal(
        await ask(node, "s.echo", params), params, "what is served is equal", id="what-is-served-is-equal"
    )


@scenario("MOL-3.17", "SHOULD", "high", basis=["M12"], roles=SERVICE)
async def request_while_stopping(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Request while stopping.

    Fault: Service with a stop hook of 1.5 s ({"special": "slow_stop"}; without it the window is 100 ms):
    REQUEST injected in the turn in which the empty INFO is read, another 500 ms later if the connection is
    still open
    Pass: Each REQUEST that reached the client before DISCONNECT gets one RESPONSE: the normal result, or
    `success` false (404 ServiceNotAvailableError); none is met with silence
    Seen: moleculer transit.js (source); measured: moleculer 0.14.36 and 0.15.2 serve normally during the
    first 100 ms, then answer 404
    """
    node = peer(broker)
    await joined(broker, client, offers=[a_service({"echo": "echo"})])
    slow = {"slow": {"special": "slow_stop"}}
    args = {"session": "s1", "service": "slow", "actions": slow}
    has_slow = (await client.op("mol.serve", 8.0, **args)).ok
    await met(broker, node, "s.echo", *(["slow.slow"] if has_slow else []))
    since = mark(broker)
    closing = client.begin("close", 8.0, session="s1")
    empty = await came(broker, "Info", since=since, within_s=4.0, where=lambda p: not services_in(p))
    expect.exercised(
        empty,
        "the client did not announce that it has no services any more",
        id="the-client-told-that-it-has-no-services-any-more",
    )
    asked = [request(node, "s.echo", {"n": 1})]
    await asyncio.sleep(0.5)
    if not said(broker, "Disconnect", since):
        asked.append(request(node, "s.echo", {"n": 2}))
    expect.ok(await closing, "close completes", id="close-completes")
    await came(broker, "Disconnect", since=since)  # what was sent may be on its way yet
    answers = [p for _, p in said(broker, "Response", since)]
    expect.note(f"{len(asked)} requests while the node stopped")
    for id in asked:
        found: list[Any] = [p for p in answers if getattr(p, "id", None) == id]
        expect.equal(
            len(found),
            1,
            "a REQUEST before DISCONNECT gets one RESPONSE",
            id="a-request-before-disconnect-gets-one-response",
        )
        error = found[0].error if isinstance(found[0].error, dict) else {}
        fits = found[0].success is True or error.get("code") == 404
        expect.that(
            fits, "the RESPONSE is the result, or 404", found[0], id="the-response-is-the-result-or-n"
        )


@scenario("MOL-3.18", "SHOULD", "high", basis=["M8", "M12"], roles=SERVICE, revision=2)
async def in_flight_at_stop(broker: Moleculer, client: Client, expect: Expect) -> None:
    """In-flight at stop.

    Fault: Action takes 1.5 s; `close` 100 ms after the REQUEST
    Pass: RESPONSE (result or error) before DISCONNECT. Non-strict: DISCONNECT without the RESPONSE, nothing
    published afterwards (moleculer without context tracking; the caller then rejects by DISCONNECT). Fail:
    RESPONSE after DISCONNECT, or the connection closes with neither
    Seen: moleculer#160; moleculer#248; measured: 0.14.36 and 0.15.2 drop it by default, answer first with
    tracking enabled
    """
    node = peer(broker)
    await joined(broker, client, offers=[a_service({"slow": {"sleep_ms": 1500}})])
    id = request(node, "s.slow")
    await asyncio.sleep(0.1)
    early = said(broker, "Response", where=lambda p: p.id == id)
    expect.exercised(
        not early, "the request was answered before the close", id="the-request-was-answered-before-the-close"
    )
    closing = client.begin("close", 8.0, session="s1")
    expect.ok(await closing, "close completes", id="close-completes")
    await asyncio.sleep(2.0)
    answers = said(broker, "Response", where=lambda p: p.id == id)
    closes = said(broker, "Disconnect")
    expect.that(
        answers or closes,
        "the connection closes with a RESPONSE or a DISCONNECT",
        "neither",
        id="the-connection-closes-with-a-response-or-a-disconnect",
    )
    if answers and closes:
        in_order = answers[0][0].seq < closes[0][0].seq
        expect.that(in_order, "no RESPONSE after DISCONNECT", id="no-response-behind-disconnect")
    expect.tolerate(
        answers, "the RESPONSE comes before DISCONNECT", "none", id="the-response-comes-before-disconnect"
    )
    if closes:
        last = closes[0][0].seq
        next_position = [r.kind for r, p in broker.packets(since=last) if r.tap & Tap.RECEIVED]
        expect.that(
            not next_position,
            "nothing is published after DISCONNECT",
            next_position,
            id="nothing-is-published-behind-disconnect",
        )


@scenario("MOL-3.25", "SHOULD", "medium", basis=["M10"], roles=SERVICE)
async def deadline_kept(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Deadline kept by the callee.

    Fault: REQUEST with `timeout` 300 to an action that sleeps 1500 ms
    Pass: Exactly one RESPONSE: success false (RequestTimeoutError, code 504) between 280 and 700 ms.
    Non-strict: the result at 1.5 s
    Seen: measured: moleculer 0.14.36 and 0.15.2 answer 504 themselves
    """
    node = peer(broker)
    await joined(broker, client, offers=[a_service({"slow": {"sleep_ms": 1500}})])
    begun = now()
    id = request(node, "s.slow", timeout=300)
    found = await came(broker, "Response", within_s=2.5, where=lambda p: p.id == id)
    expect.that(found, "the REQUEST is answered", "no RESPONSE", id="the-request-is-answered")
    answer: Any = found[0][1]
    took = when(broker, found[0][0]) - begun
    if answer.success is True:
        expect.tolerate(
            False,
            "the callee keeps the caller's deadline",
            f"the result after {took:.2f} s",
            id="the-callee-keeps-the-caller-s-deadline",
        )
    else:
        expect.that(took >= 0.28, "not before the deadline", took, id="not-before-the-deadline")
        expect.within(
            took, 0.7, "the callee answers at the deadline", id="the-callee-answers-at-the-deadline"
        )
        error = answer.error if isinstance(answer.error, dict) else {}
        expect.equal(
            error.get("code"), 504, "the code of the answer is 504", id="the-code-of-the-answer-is-n"
        )
    await asyncio.sleep(max(0.0, begun + 1.9 - now()))
    count = len(said(broker, "Response", where=lambda p: p.id == id))
    expect.equal(count, 1, "exactly one RESPONSE", id="exactly-one-response")
