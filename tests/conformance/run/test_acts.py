"""Acts: each does what it says to the frame at hand, and stands any other frame at its place."""

from __future__ import annotations

import json

import msgspec
import pytest

from conformance.run.acts import ACTS
from conformance.run.acts.fields import other_values, paths_of, replaced
from conformance.run.case import Case
from conformance.run.inprocess import client_of, run, runner
from conformance.run.specs import Injection, Spec
from conformance.search.systematic.universe import places, singles
from fakebrokers.core.frames import Frame, Malformed, kind_of
from fakebrokers.faults.effects.batch import joined
from fakebrokers.rabbitmq_stream.frames import (
    Deliver,
    MetadataResponse,
    PeerPropertiesResponse,
    PublishConfirm,
    PublishError,
)
from fakebrokers.rabbitmq_stream.wiretypes import BrokerAddress, StreamMetadata

PROTOCOL = "rabbitmq-stream"
CONFIRM = 9  #: the first PublishConfirm of the base `publish`, counted on the way to the client


def injected(act: str, param: object = None, nth: int = CONFIRM, direction: str = "out") -> Case:
    spec = Spec(PROTOCOL, "publish", (Injection("c1", direction, nth, act, param),))
    case = run(client_of(PROTOCOL), spec)
    assert case.hits, "the act did not take place"
    return case


@pytest.fixture(scope="module")
def plain() -> Case:
    return run(client_of(PROTOCOL), Spec(PROTOCOL, "publish"))


def kinds(case: Case, connection: str = "c1", direction: str = "out") -> list[str]:
    return [kind_of(seen.frame) for seen in case.conns[connection].of(direction)]


def test_the_frame_that_the_tests_disturb_is_a_confirm(plain: Case) -> None:
    assert kinds(plain)[CONFIRM - 1] == "PublishConfirm"
    assert not plain.hits


@pytest.mark.parametrize(
    ("act", "frames", "by"),
    [("rst", CONFIRM, "broker"), ("fin", CONFIRM, "broker"), ("rst-before", CONFIRM - 1, "broker")],
)
def test_a_loss_ends_the_connection_there(act: str, frames: int, by: str) -> None:
    conn = injected(act).conns["c1"]
    assert (len(list(conn.of("out"))), conn.ended_by) == (frames, by)


def test_a_cut_leaves_part_of_a_frame() -> None:
    conn = injected("cut", 6).conns["c1"]
    assert (len(list(conn.of("out"))), conn.partial) == (CONFIRM - 1, 6)


def test_a_lost_frame_is_all_that_is_missing(plain: Case) -> None:
    assert len(kinds(injected("lost"))) == len(kinds(plain)) - 1


def test_twice_is_twice() -> None:
    frames = [seen.frame for seen in injected("twice").conns["c1"].of("out")]
    assert frames[CONFIRM - 1] == frames[CONFIRM]


def test_swap_puts_the_next_frame_in_front(plain: Case) -> None:
    before = [seen.frame for seen in plain.conns["c1"].of("out")]
    after = [seen.frame for seen in injected("swap").conns["c1"].of("out")]
    assert after[CONFIRM - 1 : CONFIRM + 1] == [before[CONFIRM], before[CONFIRM - 1]]


def test_late_is_late(plain: Case) -> None:
    def times(case: Case) -> list[float]:
        return [round(one.at.t, 6) for one in case.facts.settled if one.place[-1] == 1]

    assert times(plain)[0] == 0.0
    assert 2.5 in times(injected("late")), "the faults are cleared then, and let go what they hold"


def test_a_contradiction_takes_the_place_of_the_answer() -> None:
    frame = list(injected("contradict", ["instead", 99]).conns["c1"].of("out"))[CONFIRM - 1].frame
    assert isinstance(frame, PublishError)
    assert frame.errors == ((1, 99),)


def test_another_type_has_the_key_of_the_question() -> None:
    case = injected("type", ["DeleteResponse", "before"], nth=8)
    frames = [seen.frame for seen in case.conns["c1"].of("out")][7:9]
    assert [kind_of(frame) for frame in frames] == ["DeleteResponse", kind_of(frames[1])]
    assert frames[0].correlation_id == frames[1].correlation_id  # type: ignore[attr-defined]


def test_a_longer_frame_has_a_size_that_fits(plain: Case) -> None:
    assert kinds(injected("shape", "longer", nth=8)) == kinds(plain)


def test_so_has_a_shorter_one(plain: Case) -> None:
    frames = [seen.frame for seen in injected("shape", "shorter", nth=8).conns["c1"].of("out")]
    bad = [number for number, frame in enumerate(frames, 1) if isinstance(frame, Malformed)]
    assert bad == [8], "what comes after it is read"


def test_a_wrong_number_is_not_mended() -> None:
    [bad] = [
        one
        for one in injected("number", [4, 2, 0xFFFF]).conns["c1"].of("out")
        if isinstance(one.frame, Malformed)
    ]
    assert bad.size > 4


def test_what_happens_to_the_broker_comes_behind_the_frame() -> None:
    seen = kinds(injected("happens", ["leader moves", ""]))
    assert seen[CONFIRM - 1] == "PublishConfirm"
    assert "MetadataUpdate" in seen[CONFIRM:]


FRAME = MetadataResponse(7, (BrokerAddress(0, "host", 1),), (StreamMetadata("S", 1, 0, (1, 2)),))


def test_paths_reach_into_arrays_and_tuples() -> None:
    found = {".".join(map(str, path)) for path, _ in paths_of(FRAME)}
    assert {"correlation_id", "brokers", "brokers.0.1", "streams.0.1", "streams.0.3"} <= found


def test_a_field_deep_inside_is_replaced() -> None:
    changed = replaced(FRAME, ("streams", 0, 1), {"add": 5})
    assert changed == msgspec.structs.replace(FRAME, streams=(StreamMetadata("S", 6, 0, (1, 2)),))


def test_an_array_gets_many_entries_or_none() -> None:
    assert len(replaced(FRAME, ("brokers",), "many entries").brokers) > 16
    assert replaced(FRAME, ("brokers",), "no entries").brokers == ()


def test_no_value_is_its_own_other_one() -> None:
    for value in (0, 1, 2**53 + 1, ""):
        assert value not in [new for _, new in other_values(value)]


IDS = [PublishConfirm(0, (number).to_bytes(8)) for number in range(3)]


def test_frames_of_a_kind_become_one_with_the_messages_of_all() -> None:
    both = joined(joined(IDS[0], IDS[1]), IDS[2])
    assert both == PublishConfirm(0, b"".join(number.to_bytes(8) for number in range(3)))
    errors = PublishError(0, ((1, 5),)), PublishError(0, ((2, 6), (3, 6)))
    assert joined(*errors) == PublishError(0, ((1, 5), (2, 6), (3, 6)))


@pytest.mark.parametrize("other", [PublishConfirm(1, bytes(8)), PublishError(0, ((1, 5),)), FRAME])
def test_frames_that_differ_elsewhere_do_not(other: Frame) -> None:
    with pytest.raises(ValueError):
        joined(IDS[0], other)


def test_confirms_that_come_in_one_frame_are_as_many(plain: Case) -> None:
    case = injected("join")
    assert kinds(case).count("PublishConfirm") < kinds(plain).count("PublishConfirm")
    assert [done.result.word for done in case.done("publish") if done.result] == [
        done.result.word for done in plain.done("publish") if done.result
    ]


def test_every_act_has_a_place_in_a_base_of_ten_lines(plain: Case) -> None:
    used = {item.spec.injections[0].act for item in singles(plain)}
    assert set(ACTS) - used == {
        *("payload", "part", "torn", "spelled", "last"),
    }, "those need deliveries, several parts, other ways to write a frame, and a last word inside one"


def test_parameters_are_plain_values(plain: Case) -> None:
    for item in singles(plain):
        for injection in item.spec.injections:
            assert json.loads(json.dumps(injection.param)) == injection.param


@pytest.mark.parametrize("act", sorted(ACTS))
def test_an_act_stands_any_frame(act: str, plain: Case) -> None:
    made = [item.spec.injections[0] for item in singles(plain) if item.spec.injections[0].act == act]
    param = made[0].param if made else [0, 1]
    direction = made[0].direction if ACTS[act].lasting else "out"
    for nth in (1, 4, CONFIRM):
        case = run(
            client_of(PROTOCOL), Spec(PROTOCOL, "publish", (Injection("c1", direction, nth, act, param),))
        )
        assert not case.harness


def test_a_frame_is_cut_between_the_messages_in_it() -> None:
    case = runner(PROTOCOL)(Spec(PROTOCOL, "consume"))
    place = next(place for place in places(case) if isinstance(place.frame, Deliver))
    entry = 4 + len("m0")
    between = [
        param for group, param in ACTS["cut"].params(place, case.traits) if group == "between messages"
    ]
    assert between == [place.size - entry * left for left in (3, 2, 1)]


def test_every_entry_of_a_map_may_be_missing() -> None:
    case = runner(PROTOCOL)(Spec(PROTOCOL, "publish"))
    place = next(place for place in places(case) if isinstance(place.frame, PeerPropertiesResponse))
    absent = {path[1] for _, (path, word) in ACTS["entry"].params(place, case.traits) if word == "absent"}
    assert absent == set(place.frame.properties)
