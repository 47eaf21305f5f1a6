"""Other arguments of ops: every body reaches every place of a body."""

from __future__ import annotations

from conformance.rules import judge
from conformance.run.inprocess import runner
from conformance.run.specs import ArgumentChange, Spec
from conformance.search.systematic.orders import BODIES, orders

STREAM = "rabbitmq-stream"


def test_each_way_in_which_a_base_carries_a_body_gets_every_body_once() -> None:
    found = [(what, word) for what, word, _ in orders(runner(STREAM)(Spec(STREAM, "packed")))]
    ways = {what for what, word in found if word == "empty"}
    packed = "publish_many messages subentry target wait messages.body"
    assert ways == {"publish body target wait body", packed}
    assert all(found.count((way, "long")) == len(BODIES["long"]) for way in ways)


def test_a_body_of_several_parts_gets_another_part_in_the_middle() -> None:
    changes = [change for _, _, change in orders(runner("pzq")(Spec("pzq", "bodies")))]
    assert ArgumentChange(2, "body.1", {"text": ""}) in changes


def test_an_empty_member_of_a_batch_that_is_left_out_is_found() -> None:
    spec = Spec(STREAM, "packed", changes=(ArgumentChange(2, "messages.2.body", {"text": ""}),))
    [found] = judge(runner(STREAM, "empty-bodies-are-not-packed")(spec))
    assert str(found) == 'acked-not-stored: message "" was reported as acked, and it was never written'
    assert judge(runner(STREAM)(spec)) == []
