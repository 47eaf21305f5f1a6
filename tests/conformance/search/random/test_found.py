"""What chaos has found once, as the schedules that showed it."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.rules.answers import agree
from conformance.search.random.run import runner
from conformance.search.random.schedule import Schedule
from conformance.search.random.verdict import Word, verdict_on
from fakebrokers.faults.steps import Step
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import MetadataResponse
from fakebrokers.rabbitmq_stream.wiretypes import BrokerAddress, StreamMetadata
from scenarios.rabbitmq_stream.traits import whereabouts

PARAMS: dict[str, Any] = {
    "sessions": 1, "targets": 1, "rate": 5.0, "size": 0, "publishers": 1, "messages": 8, "waits": 1.0,
    "heartbeat_ms": 20_000, "max_missed": 4, "nodes": 1,
}  # fmt: skip


def test_a_full_consumer_gets_messages_again_behind_a_redelivery() -> None:
    params = {
        **PARAMS,
        "consumers": 1,
        "puts": 6,
        "sleep_ms": 0,
        "requests": 0,
        "window": 1,
        "settles": "hand",
    }
    again = Step("redelivery", 0.5, 0.5, {}, "step1")
    verdict = verdict_on(runner("blazingmq")(Schedule("blazingmq", "mixed", params, (again,), seconds=4.0)))
    assert verdict.word is Word.PASS, verdict


def test_a_post_that_waited_for_its_connection_has_no_second_time_out() -> None:
    away = Step("crash", 0.2, 3.0, {"how": "rst"}, "step1")
    lost = {"match": {"direction": "in", "role": "publish"}, "effect": {"type": "drop"}}
    schedule = Schedule(
        "blazingmq", "publish", PARAMS, (away, Step("fault", 0.3, 9.0, lost, "step2")), seconds=9.0
    )
    case = runner("blazingmq")(schedule)
    late = [
        done for done in case.ops if done.op == "publish" and done.result is not None and not done.result.ok
    ]
    assert late
    assert all(done.ended is not None and done.ended.t - done.begun.t < done.timeout_s + 0.1 for done in late)
    assert verdict_on(case).word is Word.PASS, verdict_on(case)


def test_a_client_may_give_a_message_up_in_the_step_in_which_it_ends_the_connection() -> None:
    params = {
        "sessions": 1, "targets": 1, "rate": 5.0, "size": 0, "publishers": 1, "messages": 40, "waits": 0.5,
        "consumers": 1, "puts": 1, "sleep_ms": 0, "requests": 1, "nodes": 1, "heartbeat_s": 5, "credit": 2,
    }  # fmt: skip
    steps = Step("partition", 2.41, 8.0, {}, "step1"), Step("partition-out", 7.49, 8.0, {}, "step4")
    schedule = Schedule("rabbitmq-stream", "mixed", params, steps, seconds=0.97, seed="2106")
    case = runner("rabbitmq-stream")(schedule)
    ended = [conn.ended for conn in case.conns.values() if conn.ended_by == "client"]
    given_up = [reported.at for reported in case.reported if reported.word == "unknown"]
    assert {at.t for at in given_up if at} & {at.t for at in ended if at}
    assert verdict_on(case).word is Word.PASS, verdict_on(case)


def test_a_copy_may_wait_in_the_transport_until_its_message_has_an_answer() -> None:
    params = {
        "sessions": 1, "targets": 2, "rate": 5.0, "size": 0, "publishers": 2, "messages": 10, "waits": 0.5,
        "ack_timeout": 1_000_000, "reaper_frequency": 500_000, "settles": "auto",
    }  # fmt: skip
    again = {"match": {"direction": "in", "role": "publish", "nth": 10}}
    again["effect"] = {"type": "crash", "restart_s": 10.0}
    steps = Step("crash", 1.32, 8.0, {"how": "fin"}, "step2"), Step("fault", 4.83, 8.0, again, "step5")
    case = runner("pzq")(Schedule("pzq", "publish", params, steps, seconds=10.0, seed="2581"))
    answered = {one.place: one.at for one in reversed(case.facts.settled)}  # the first answer to each
    waited = [one for one in case.facts.written if one.at.t == one.conn.accepted.t and one.place in answered]
    assert any(one.at > answered[one.place] for one in waited)
    assert verdict_on(case).word is Word.PASS, verdict_on(case)


def test_a_response_in_the_turn_of_the_time_out_leaves_no_connection() -> None:
    late = {
        "match": {"direction": "out", "role": "response", "first": 1},
        "effect": {"type": "latency", "seconds": 2.0},
    }
    params = {
        "sessions": 1, "targets": 1, "rate": 100.0, "size": 0, "requests": 2, "limit": 20, "acks": False,
    }  # fmt: skip
    step = Step("fault", 0.0, 3.0, late, "step1")
    case = runner("narconi")(Schedule("narconi", "request", params, (step,), seconds=3.0, seed="187"))
    [asked] = [done for done in case.ops if done.op == "narc.ensure_queue"]
    assert asked.result is not None
    assert asked.result.word == "timeout"
    assert verdict_on(case).word is Word.PASS, verdict_on(case)


@pytest.mark.parametrize(
    ("protocol", "workload", "more", "steps", "seed", "seconds"),
    [
        (
            "rabbitmq-stream",
            "mixed",
            {"messages": 1, "consumers": 1, "puts": 1, "heartbeat_s": 5, "credit": 2, "requests": 10},
            (
                Step("crash", 0.74, 3.0, {"how": "fin"}, "step5"),
                Step("crash", 0.0, 0.01, {"how": "rst"}, "step1"),
            ),
            "196",
            0.94,
        ),
        (
            "blazingmq",
            "request",
            {"publishers": 0, "window": 1, "settles": "auto", "requests": 20},
            (Step("crash", 0.17, 3.0, {"how": "rst"}, "step2"),),
            "567",
            0.79,
        ),
    ],
)  # fmt: skip
def test_the_connection_of_another_session_is_no_reason_to_blame_anybody(
    protocol: str, workload: str, more: dict[str, Any], steps: tuple[Step, ...], seed: str, seconds: float
) -> None:
    params = {**PARAMS, "sessions": 2, "rate": 2.0, "sleep_ms": 0, **more}
    schedule = Schedule(protocol, workload, params, steps, seconds=seconds, seed=seed)
    verdict = verdict_on(runner(protocol)(schedule))
    assert verdict.word is Word.PASS, verdict


def test_the_order_of_replicas_says_nothing() -> None:
    """They are references to nodes, which a client may look up in the order of the nodes."""
    nodes = tuple(BrokerAddress(number, "h", number) for number in range(3))
    stream = StreamMetadata("S", Code.OK, 0, (2, 1))
    said = whereabouts(MetadataResponse(correlation_id=1, brokers=nodes, streams=(stream,)))
    row = {"name": "S", "exists": True, "code": 1, "leader": "h:0", "replicas": ["h:1", "h:2"]}
    assert agree({"streams": [row]}, said)
    assert not agree({"streams": [{**row, "replicas": ["h:1", "h:1"]}]}, said)


def test_a_node_answers_what_comes_with_the_word_that_it_listens() -> None:
    params = {
        "sessions": 2, "targets": 1, "rate": 100.0, "size": 0, "requests": 1, "serves": False, "peers": 2,
    }  # fmt: skip
    slow = Step("slow-link", 0.0, 5.0, {"delay_s": 0.4, "jitter_s": 0.2, "bytes_per_s": 20_000}, "step5")
    cut = Step("cut", 1.43, 0.01, {"how": "rst", "times": 4}, "step4")
    schedule = Schedule(
        "moleculer", "request", params, (slow, cut), seconds=5.0, seed="2202", realism="illegal"
    )
    case = runner("moleculer")(schedule)
    assert verdict_on(case).word is Word.PASS, verdict_on(case)


def test_who_has_not_heard_that_a_node_left_may_wait_for_it() -> None:
    params = {
        "sessions": 2, "targets": 1, "rate": 100.0, "size": 0, "requests": 1, "serves": True, "peers": 1,
    }  # fmt: skip
    deaf = Step("bus-partition", 0.0, 0.015, {"deaf": "client"}, "step1")  # until after the node has left
    flap = Step("node-flap", 0.01, 0.01, {"times": 1, "politely": True}, "step2")
    case = runner("moleculer")(
        Schedule("moleculer", "request", params, (deaf, flap), seconds=1.0, seed="3255")
    )
    [call] = [done for done in case.done("mol.call") if done.result is not None and not done.result.ok]
    assert {one.conn.name for one in case.facts.dropped if one.at < call.ended} == {"c2"}  # not the caller
    assert verdict_on(case).word is Word.PASS, verdict_on(case)


def test_who_listens_and_was_not_heard_cannot_know() -> None:
    """NATS answers no SUB: the INFO that a node asks for never comes."""
    lost = {"match": {"direction": "in", "role": "open", "nth": 5}, "effect": {"type": "drop"}}
    step = Step("fault", 0.0, 0.01, lost, "step1")
    case = runner("moleculer")(Schedule("moleculer", "script", {"script": "call", "nodes": 1}, (step,)))
    assert case.notes.unheard  # the fifth SUB was lost
    assert verdict_on(case).word is Word.PASS, verdict_on(case)


def test_a_connect_may_run_out_of_time_while_it_hears_from_others() -> None:
    steps = Step("crash", 0.0, 2.0, {"how": "rst"}, "step1"), Step("partition", 1.74, 4.0, {}, "step2")
    params = {"script": "peers", "nodes": 1}
    case = runner("moleculer")(Schedule("moleculer", "script", params, steps, seed="1318"))
    first = next(iter(case.done("connect")))
    assert first.result is not None and first.result.word == "timeout"
    assert verdict_on(case).word is Word.PASS, verdict_on(case)
