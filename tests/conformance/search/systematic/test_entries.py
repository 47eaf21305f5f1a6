"""Entries that are missing or of another type, and frames that are written otherwise."""

from __future__ import annotations

import json

import pytest
from msgspec import UNSET

from conformance.run.acts.entries import changed, entries_of, missing_in
from conformance.run.acts.fields import injected, other_values, paths_of
from conformance.run.inprocess import runner
from conformance.run.specs import EVERY, Injection, Spec, from_json, to_json
from fakebrokers.moleculer.packets import Response
from fakebrokers.narconi import frames as f
from fakebrokers.narconi.codec import NarconiCodec
from scenarios.moleculer.sweep.reading import nats_decoder
from scenarios.moleculer.sweep.spelling import SILENT
from scenarios.moleculer.sweep.spelling import spellings as of_nats
from scenarios.moleculer.traits import message
from scenarios.narconi.sweep.reading import Answers, Requests
from scenarios.narconi.sweep.spelling import spellings as of_narconi

ANSWER = Response(id="a", success=True, data={"n": 1, "list": [1, 2]}, ver="5", sender="peer")


def test_entries_are_those_that_can_be_of_any_type() -> None:
    paths = set(entries_of(ANSWER))
    assert {("success",), ("data",), ("data", "n"), ("data", "list"), ("data", "list", 0)} <= paths
    assert ("error",) not in paths  # it is not there


def test_entries_are_left_out_at_any_depth() -> None:
    assert changed(ANSWER, ("success",), "absent").success is UNSET
    assert changed(ANSWER, ("data", "n"), "absent").data == {"list": [1, 2]}
    assert changed(ANSWER, ("data", "list", 0), "absent").data == {"n": 1, "list": [2]}


def test_entries_get_values_of_other_types() -> None:
    assert changed(ANSWER, ("success",), "text").success == "7"
    assert changed(ANSWER, ("data", "list", 0), "null").data == {"n": 1, "list": [None, 2]}
    with pytest.raises(LookupError):
        changed(ANSWER, ("data", "nothing"), "null")


CONFIRMED = f.HttpConfirm(201, (("Date", "now"), ("Content-Length", "0")))


def test_what_may_be_missing_is_left_out() -> None:
    there = f.WsDeliver(b"body", "text/plain", 5, False, "1")
    assert set(missing_in(there)) == {("content_type",), ("timestamp",), ("redelivered",), ("ack_id",)}
    assert changed(there, ("redelivered",), "absent").redelivered is None


def test_items_of_an_array_are_left_out_one_by_one() -> None:
    assert set(missing_in(CONFIRMED)) == {("headers", 0), ("headers", 1)}
    assert changed(CONFIRMED, ("headers", 0), "absent").headers == (("Content-Length", "0"),)


def test_a_flag_is_the_other_one() -> None:
    there = f.WsDeliver(b"", redelivered=False)
    assert (("redelivered",), False) in list(paths_of(there))
    assert list(other_values(False)) == [("other", True)]
    assert injected(there, [["redelivered"], True]).redelivered is True  # type: ignore[attr-defined]


def test_a_text_that_is_no_utf_8_stands_in_specs() -> None:
    foreign = dict(other_values("a"))["foreign"]
    spec = Spec("narconi", "consume", (Injection("c1", "out", 2, "field", [["ack_id"], foreign]),))
    assert from_json(to_json(spec)) == spec
    changed = injected(f.WsDeliver(b"", ack_id="1"), [["ack_id"], foreign])
    assert changed.ack_id == "\udcff\udcfe"  # type: ignore[attr-defined]


PACKET = {"ver": "5", "sender": "peer", "cpu": 1, "some": {"text": "äe", "on": True}}
BEAT = message("MOL.HEARTBEAT", json.dumps(PACKET).encode())


@pytest.mark.parametrize("name", of_nats(BEAT))
def test_a_line_of_nats_means_the_same_written_otherwise(name: str) -> None:
    data = of_nats(BEAT)[name]
    frames = list(nats_decoder("client").feed(data))
    [frame] = [one for one, _ in frames if getattr(one, "subject", "") == "MOL.HEARTBEAT"]
    there = json.loads(frame.payload)  # type: ignore[attr-defined]
    silent = [unit for unit in SILENT.values() if unit in data]  # what stands beside it
    assert len(frames) == 1 + len(silent) and sum(size for _, size in frames) == len(data)
    assert {name: there[name] for name in PACKET} == PACKET
    assert data != BEAT


DELIVERY = f.WsDeliver(b"body", "text/plain", 5, False, "1", {"x-msg-x-a": "x"})
TAKE = b"DELETE /v2/test/queues/q/messages HTTP/1.1\r\nHost: h\r\n\r\n"
TAKEN = f.HttpDeliver(200, (("Content-Type", "a/b"), ("Content-Length", "4")), b"body")


def read(data: bytes, *before: bytes) -> list[object]:
    requests = Requests()
    list(requests.feed(before[0]))
    reader = Answers(requests)
    found = [frame for part in (*before[1:], data) for frame, _ in reader.feed(part)]
    return [frame for frame in found if not isinstance(frame, f.Continue | f.WsPing | f.WsPong | f.WsAccept)]


@pytest.mark.parametrize("name", of_narconi(TAKEN, NarconiCodec().encode(TAKEN)))
def test_an_answer_over_http_means_the_same_written_otherwise(name: str) -> None:
    data = of_narconi(TAKEN, NarconiCodec().encode(TAKEN))[name]
    [answer] = read(data, TAKE)
    assert isinstance(answer, f.HttpDeliver)
    kinds = [value for key, value in answer.headers if key.lower() == "content-type"]
    assert (answer.status, answer.body, kinds) == (200, b"body", ["a/b"])


@pytest.mark.parametrize("name", of_narconi(DELIVERY, NarconiCodec().encode(DELIVERY)))
def test_a_delivery_means_the_same_written_otherwise(name: str) -> None:
    from tests.conformance.search.systematic.test_narconi import upgrade

    data = of_narconi(DELIVERY, NarconiCodec().encode(DELIVERY))[name]
    assert read(data, *upgrade("consume", "?ack")) == [DELIVERY]


def test_a_lasting_trouble_meets_every_connection_until_the_faults_are_cleared() -> None:
    case = runner("narconi")(Spec("narconi", "consume", (Injection(EVERY, "out", 2, "rst"),)))
    assert case.hits > 2
    assert len(case.touched) == case.hits
    assert [done.result.ok for done in case.ops if done.phase == "probe" and done.result] == [True, True]
