"""NET-3.02 for Moleculer: the peer itself answers out of order."""

from __future__ import annotations

import random

from conformance.suite import Client, Expect, scenario
from scenarios.moleculer._steps import asked, begin_call, respond
from scenarios.moleculer.subject import MoleculerSubject
from scenarios.moleculer.subject.keeper import WAIT
from scenarios.subjects import PUBLISHER

CALLS = 100


@scenario("NET-3.02", protocol="moleculer", roles=PUBLISHER, timeout_s=60)
async def hundred_concurrent_calls(subject: MoleculerSubject, client: Client, expect: Expect) -> None:
    await subject.ready()
    seen = len(subject.peer.requests)
    calls = [begin_call(client, WAIT, {"number": number}, 10.0) for number in range(CALLS)]
    requests = await asked(subject.peer, CALLS, skip=seen)
    random.Random(subject.faults.plan.seed).shuffle(requests)
    for request in requests:
        respond(subject.peer, request, data=request.params)
    for number, call in enumerate(calls):
        found = expect.ok(await call, f"op {number} ends with its result", id="op-n-ends-with-its-result")[
            "data"
        ]
        expect.equal(
            found,
            {"number": number},
            f"op {number} ends with the result that was made for it",
            id="op-n-ends-with-the-result-that-was-made-for-it",
        )
