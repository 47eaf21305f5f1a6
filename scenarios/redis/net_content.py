"""NET-4.04 for Redis, whose messages go to those who listen, and whose limit is 512 MiB."""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.messages import same_body
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from scenarios.net.content import CORPUS
from scenarios.redis.subject import RedisSubject
from scenarios.subjects import ROLES


@scenario("NET-4.04", protocol="redis", roles=ROLES, timeout_s=90)
async def payload_corpus(subject: RedisSubject, client: Client, expect: Expect) -> None:
    await subject.rehearse()
    await subject.connected()
    expect.prepared(await subject.subscribe(subject.queue))
    large: dict[str, Any] = {"gen": "rand", "seed": 404, "len": subject.largest}
    echoed = expect.prepared(await client.op("echo", body=large))["body"]
    for number, (name, body) in enumerate(CORPUS.items(), 1):
        given = large if name == "large" else body
        result = await subject.publish(subject.queue, given, timeout=10.0)
        expect.outcome(result, "acked", f"{name}: acked", id=slug("{}-acked", name))
        got = await subject.wait_messages(number, within_s=10.0)
        expect.equal(len(got), number, "every body is delivered once", id="every-body-is-delivered-once")
        same = got[-1].body == echoed if name == "large" else same_body(got[-1].body, body)
        criterion = f"{name}: equal, nothing truncated"
        expect.that(same, criterion, got[-1].body, id=slug("{}-equal-nothing-truncated", name))
