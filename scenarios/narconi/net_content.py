"""NET-4.02 and 4.03 for Narconi: unexpected statuses and members."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import Narconi
from fakebrokers.core.session import HangUp
from fakebrokers.faults import drop, fault
from fakebrokers.narconi.faults import HttpAnswer, error_instead_of_confirm
from fakebrokers.narconi.frames import WsClose, WsFrame
from scenarios.narconi._steps import end, say
from scenarios.narconi.subject import FUTURE, NarconiSubject
from scenarios.net.content import unknown_optional_fields
from scenarios.subjects import PUBLISHER, ROLES, Op

STATUSES = (418, 599)
WORD = "FutureError"


@scenario("NET-4.02", protocol="narconi", roles=PUBLISHER, revision=2)
async def unknown_codes(subject: NarconiSubject, client: Client, expect: Expect) -> None:
    broker = subject.fake
    await subject.ready()
    post = _post(subject)
    if post is not None:
        for status in STATUSES:
            _answer_posts(broker, status, {"code": WORD, "message": "from the future"})
            result = await subject.begin(post, 5.0)
            _refused(expect, result, f"a POST answered {status}", (str(status), WORD, "from the future"))
            expect.ok(
                await subject.begin(post, 5.0),
                f"after {status} the session stays usable",
                id=slug("after-{}-the-session-stays-usable", status),
            )
    broker.faults.add(error_instead_of_confirm("x", 999, nth=1, scope="run"))
    result = await subject.publish(subject.queue, b"from the past")
    _refused(expect, result, "a publish answered 999", ("999",))
    if not client.reconnects("producer"):
        await subject.connected()
    await subject.works_again(
        "a publish on a new WebSocket is acked", within_s=10.0, id="a-publish-on-a-new-websocket-is-acked"
    )


def _answer_posts(broker: Narconi, status: int, value: Mapping[str, Any]) -> None:
    """The next POST gets this answer."""
    answer = HttpAnswer(status=status, body=json.dumps(value), content_type="application/json")
    broker.faults.add(fault(answer, kind="HttpPublish", direction="in", nth=1, scope="run"))


def _post(subject: NarconiSubject) -> Op | None:
    return next((op for op in subject.ops(subject.queue) if op.op == "narc.post"), None)


def _refused(expect: Expect, result: Result, what: str, words: tuple[str, ...]) -> None:
    expect.failed(
        result,
        ("refused",),
        f"{what} ends by its deadline as refused, never success",
        id=slug("{}-ends-by-its-deadline-as-refused-never-success", what),
    )
    text = f"{result.code} {result.error.text if result.error else ''}"
    expect.that(
        any(word in text for word in words),
        f"{what}: the error shows the number or the word",
        text,
        id=slug("{}-the-error-shows-the-number-or-the-word", what),
    )


@scenario("NET-4.03", protocol="narconi", roles=ROLES)
async def unknown_members(subject: NarconiSubject, client: Client, expect: Expect) -> None:
    await unknown_optional_fields(subject, client, expect)
    broker = subject.fake
    await subject.ready()
    broker.faults.add(drop(kind=subject.confirm, direction="out", name="the error comes instead"))
    mark = broker.journal.last_seq
    call = subject.begin_publish(subject.queue, b"refused")
    [asked] = await expect.reached(
        broker, "nothing was published", kind=subject.publishing, since=mark, id="nothing-was-published"
    )
    error = {"error": "Message too large.", "code": 429, **FUTURE}
    say(broker, asked.connection, WsFrame(1, json.dumps(error).encode()), WsClose())
    end(broker, asked.connection, HangUp.FIN)
    result = await call
    expect.failed(
        result,
        ("refused",),
        "an error with more members refuses the message",
        code=429,
        id="an-error-with-more-members-refuses-the-message",
    )
    broker.faults.clear()
    post = _post(subject)
    if post is not None:
        _answer_posts(broker, 429, {"code": "RequestThrottled", "message": "Message too large.", **FUTURE})
        refused = await subject.begin(post, 5.0)
        expect.failed(
            refused,
            ("refused",),
            "a body with more members refuses the POST",
            code=429,
            id="a-body-with-more-members-refuses-the-post",
        )
