"""NET-4.02, 4.03 and 4.07 for Narconi: statuses, members and bytes that nobody expects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any

from conformance.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from fakebrokers import Narconi
from fakebrokers.core.session import HangUp
from fakebrokers.faults import drop, fault, rewrite
from fakebrokers.narconi.faults import HttpAnswer, error_instead_of_confirm
from fakebrokers.narconi.forging import CorruptContent, WithHeaders
from fakebrokers.narconi.frames import WsClose, WsFrame
from scenarios.narconi._steps import end, say
from scenarios.net._scripts import Op, Script, script_for
from scenarios.net._scripts.narconi import NARC, SETTINGS
from scenarios.net.content import outlived

ROLES = ("publisher", "consumer")
STATUSES = (418, 599)
WORD = "FutureError"
FUTURE = {"future": {"list": [1, None, "x"]}, "more": True}
SEEDS = 50
WIDTH = 10  #: sessions beside each other; each has several connections
#: What a server says that has content, and how often at least in `SEEDS` runs.
SAYINGS = {"WsAccept": 2 * SEEDS, "WsDeliver": SEEDS, "WsClose": SEEDS}
SAYINGS_OVER_HTTP = {"HttpConfirm": SEEDS, "HttpDeliver": SEEDS}


@scenario("NET-4.02", protocols=NARC, roles=("publisher",), server=SETTINGS)
async def unknown_codes(broker: Narconi, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.ready()
    post = _post(script)
    if post is not None:
        for status in STATUSES:
            _answer_posts(broker, status, {"code": WORD, "message": "from the future"})
            result = await script.begin(post, 5.0)
            _refused(expect, result, f"a POST answered {status}", (str(status), WORD, "from the future"))
            expect.ok(await script.begin(post, 5.0), f"after {status} the session stays usable")
    broker.faults.add(error_instead_of_confirm("x", 999, nth=1, scope="run"))
    result = await client.publish(script.queue, b"from the past")
    _refused(expect, result, "a publish answered 999", ("999",))
    again = await client.publish(script.queue, b"afterwards")
    expect.outcome(again, "acked", "a publish on a new WebSocket is acked")


def _answer_posts(broker: Narconi, status: int, value: Mapping[str, Any]) -> None:
    """The next POST gets this answer."""
    answer = HttpAnswer(status=status, body=json.dumps(value), content_type="application/json")
    broker.faults.add(fault(answer, kind="HttpPublish", direction="in", nth=1, scope="run"))


def _post(script: Script) -> Op | None:
    return next((op for op in script.ops(script.queue) if op.op == "narc.post"), None)


def _refused(expect: Expect, result: Result, what: str, words: tuple[str, ...]) -> None:
    expect.failed(result, ("refused",), f"{what} ends by its deadline as refused, never success")
    text = f"{result.code} {result.error.text if result.error else ''}"
    expect.that(any(word in text for word in words), f"{what}: the error shows the number or the word", text)


@scenario("NET-4.03", protocols=NARC, roles=ROLES, server=SETTINGS)
async def unknown_members(broker: Narconi, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.rehearse()
    more = {f"headers.{name}": value for name, value in FUTURE.items()}
    broker.faults.add(
        fault(WithHeaders(headers={"X-Future": "1", "Future": "a, b"}), direction="out", name="headers"),
        rewrite(fields=more, kind="WsDeliver", name="metadata"),
    )
    await script.run("future")
    for name in ("headers", "metadata"):
        expect.exercised(broker.faults.fired(name), f"nothing came with more {name}")
    await script.ready()
    broker.faults.add(drop(kind=script.confirm, direction="out", name="the error comes instead"))
    mark = broker.journal.last_seq
    call = client.begin_publish(script.queue, b"refused")
    [asked] = await expect.reached(broker, "nothing was published", kind=script.publishing, since=mark)
    error = {"error": "Message too large.", "code": 429, **FUTURE}
    say(broker, asked.connection, WsFrame(1, json.dumps(error).encode()), WsClose())
    end(broker, asked.connection, HangUp.FIN)
    result = await call
    expect.failed(result, ("refused",), "an error with more members refuses the message", code=429)
    broker.faults.clear()
    post = _post(script)
    if post is not None:
        _answer_posts(broker, 429, {"code": "RequestThrottled", "message": "Message too large.", **FUTURE})
        refused = await script.begin(post, 5.0)
        expect.failed(refused, ("refused",), "a body with more members refuses the POST", code=429)


@scenario("NET-4.07", protocols=NARC, roles=ROLES, server=SETTINGS, timeout_s=120)
async def one_wrong_byte(broker: Narconi, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.rehearse()
    dice = Random(broker.faults.plan.seed)
    sayings = {**SAYINGS, **(SAYINGS_OVER_HTTP if client.has_role("http") else {})}
    chosen = [(kind, nth) for kind, count in sayings.items() for nth in range(1, count + 1)]
    for number, (kind, nth) in enumerate(dice.sample(chosen, SEEDS)):
        name = f"seed {number}: {kind} {nth}"
        broker.faults.add(fault(CorruptContent(), kind=kind, nth=nth, scope="run", name=name))
    fired = await outlived(script, SEEDS, width=WIDTH, timeout=5.0)
    expect.may_not_fire("seed *", "their places are drawn; half of them have to take place")
    expect.exercised(fired >= SEEDS // 2, f"only {fired} of {SEEDS} faults took place")
