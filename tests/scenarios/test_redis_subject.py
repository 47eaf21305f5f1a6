"""What counts as delivered over Redis, where nothing is delivered again."""

from __future__ import annotations

import pytest

from conformance.clients.adapter.kit import report_body
from conformance.clients.adapter.messages import Message
from fakebrokers import Redis
from fakebrokers.faults import fault
from fakebrokers.faults.effects import Rst, Truncate
from scenarios.redis.subject import RedisSubject
from tests.bench import Bench
from tests.redis.commands import command

BODIES = [b"first", b"second", b"third"]


@pytest.mark.parametrize(
    ("got", "fair"), [(BODIES, True), (BODIES[1:], True), (BODIES[2:], False), (BODIES[:2], False)]
)
def test_a_message_of_which_only_half_has_left_may_be_missing(got: list[bytes], fair: bool) -> None:
    broker = Redis(body_limit=100)
    broker.faults.add(fault(Truncate(share=0.5), Rst(), kind="Message", nth=1, scope="run"))
    bench = Bench(broker)
    for body in BODIES:
        client = bench.connect()
        client.say(command("subscribe", "orders"))
        broker.publish("orders", body)
    subject = object.__new__(RedisSubject)
    subject.broker = broker
    messages = [Message("m1", sub="c1", target="orders", body=report_body(body)) for body in got]
    assert subject.are(messages, BODIES) is fair
