"""What a page shows of a run: rows in the order of events, and who took part."""

from __future__ import annotations

import gc
import json
import socket
import weakref
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fakebrokers import RabbitMQStream
from fakebrokers.errors import UsageError
from fakebrokers.journal import Journal, RunJournal, Tap
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.frames import FRAMES, DeclarePublisher, PeerProperties, PublishConfirm
from fakebrokers.rabbitmq_stream.publishing import publish
from fakebrokers.viewer import RunDocument, of_journal, of_log
from fakebrokers.viewer.calls import CallLog, arguments_of
from fakebrokers.viewer.cli import trace
from fakebrokers.viewer.page import first_difference, page_of
from fakebrokers.viewer.rows import LANES, Lane, Row, readable
from tests.pages_of_runs import documents

HOSTILE = "</script><img src=x onerror=alert(1)>&lt;\u2028"


def published(number: int, journal: Journal, at: float, *, taps: tuple[Tap, Tap] = (Tap.IN, Tap.OUT)) -> None:
    """A publish and its confirm."""
    journal.add(at, "c1", taps[0], publish(1, [(number, b"tea")]), 30)
    journal.add(
        at + 0.1,
        "c1",
        taps[1],
        PublishConfirm(publisher_id=1, publishing_ids=number.to_bytes(8)),
        21,
        "lose it",
    )


def log_of(*, confirmed: bool = True) -> RunDocument:
    """A run of one message, with what the client was asked."""
    run = RunJournal(
        None, "shop", client="rstream", client_version="1.1", protocol="rabbitmq-stream", traces=True
    )
    journal = Journal(FRAMES)
    journal.sink = run
    journal.state(1.0, "c1", "accepted", "127.0.0.1:1")
    published(7, journal, 1.2, taps=(Tap.IN, Tap.OUT if confirmed else Tap.SAID))
    journal.flush()
    run.op(1.1, "s1", 4, "publish", "invoke", key="orders", value="aa")
    run.op(1.4, "s1", 4, "publish", "ok" if confirmed else "info", key="orders", value="aa", wire_key="7")
    run.event(1.5, "s1", "disconnected", "by the broker")
    run.trace([(1.2, "in", "c1", b"\x00\x01tea"), (1.3, "out", "c1", [b"one", b"two"])])
    run.close(verdict="pass")
    return of_log(run.log())


def whats(document: RunDocument) -> list[tuple[str, str]]:
    return [(row.what, row.name) for row in document.rows]


def test_rows_stand_in_the_order_of_events() -> None:
    document = log_of()
    assert whats(document) == [
        ("state", "accepted"),
        ("op", "publish"),
        ("in", "Publish"),
        ("bytes", "5 bytes"),
        ("out", "PublishConfirm"),
        ("bytes", "6 bytes"),
        ("end", "publish"),
        ("event", "disconnected"),
    ]
    assert [lane.name for lane in document.lanes] == ["s1", "c1", "broker"]
    assert document.rows[0].t == 0
    assert ("client", "rstream 1.1") in document.about


def test_an_op_and_its_end_are_one_span() -> None:
    begun, ended = (row for row in log_of().rows if row.name == "publish")
    assert begun.op == ended.op > 0
    assert "ok after 300.0 ms" in ended.text


def test_all_rows_of_a_message_can_be_followed() -> None:
    rows = {row.name: row for row in log_of().rows if row.what != "op"}
    assert rows["Publish"].links == rows["PublishConfirm"].links == ["p:7"]
    assert set(rows["publish"].links) == {"v:aa", "p:7"}


def test_what_a_fault_took_was_said_only() -> None:
    [confirm] = [row for row in log_of(confirmed=False).rows if row.name == "PublishConfirm"]
    assert (confirm.tap, confirm.fault) == ("said", "lose it")
    [end] = [row for row in log_of(confirmed=False).rows if row.what == "end"]
    assert (end.tap, "outcome unknown" in end.text) == ("fail", True)


def test_bytes_are_there_as_they_passed() -> None:
    found = [row.details for row in log_of().rows if row.what == "bytes"]
    assert ("hex", b"\x00\x01tea".hex()) in found[0]
    assert [text for label, text in found[1] if label == "hex"] == [b"one".hex(), b"two".hex()]


def test_more_participants_than_fit_share_the_last_lane() -> None:
    journal = Journal(FRAMES)
    for number in range(1, 3 * LANES):
        journal.state(float(number), f"c{number}", "accepted")
    document = of_journal("many", journal, {})
    assert len(document.lanes) == LANES
    assert document.lanes[-2].name == f"{3 * LANES - 1 - LANES + 2} others"
    assert [lane.name for lane in document.lanes[:3]] == ["c1", "c2", "c3"]
    assert max(row.lane for row in document.rows) == LANES - 2


def test_the_journal_of_a_fake_has_the_fields_of_its_frames() -> None:
    journal = Journal(FRAMES)
    journal.add(
        1.0,
        "c1",
        Tap.IN,
        DeclarePublisher(correlation_id=1, publisher_id=2, reference="me", stream="orders"),
        9,
    )
    published(7, journal, 1.2)
    document = of_journal("orders", journal, {"test": "test_orders"})
    fields = dict(document.rows[0].details)["fields"]
    assert json.loads(fields)["stream"] == "orders"
    assert b"tea".hex() in dict(document.rows[1].details)["fields"]


def test_no_credentials_are_shown() -> None:
    from fakebrokers.rabbitmq_stream.frames import SaslAuthenticate

    journal = Journal(FRAMES)
    journal.add(
        1.0, "c1", Tap.IN, SaslAuthenticate(correlation_id=1, mechanism="PLAIN", data=b"\0me\0s3cret"), 30
    )
    shown = dict(of_journal("login", journal, {}).rows[0].details)["fields"]
    assert "s3cret" not in shown
    assert "PLAIN" in shown


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    document = RunDocument(
        HOSTILE, [("note", HOSTILE)], log_of().lanes, [Row(0.0, "in", 0, "", HOSTILE, HOSTILE, "", [], 0, [])]
    )
    page = page_of([document])
    assert "<img" not in page
    (tmp_path / "x.html").write_text(page)
    assert [each.title for each in documents(tmp_path / "x.html")] == [HOSTILE]


def test_the_page_needs_no_network() -> None:
    page = page_of([log_of()])
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_first_difference_is_where_something_else_happened() -> None:
    one, other = log_of(), log_of(confirmed=False)
    difference = first_difference(one, other)
    assert difference is not None
    assert [run.rows[at].name for run, at in zip((one, other), difference, strict=True)] == [
        "PublishConfirm"
    ] * 2
    assert first_difference(one, log_of()) is None
    one.rows.pop()
    assert first_difference(one, log_of()) == (-1, 7)


def stored_run(folder: Path, name: str) -> None:
    RunJournal(folder, name).close()


def invoke(*words: str) -> Any:
    return CliRunner().invoke(trace, words, standalone_mode=False)


def test_the_command_wants_one_run(tmp_path: Path) -> None:
    stored_run(tmp_path, "good")
    stored_run(tmp_path, "bad")
    error = invoke(str(tmp_path), "--out", str(tmp_path / "x.html")).exception
    assert "found 2: name one, FOLDER/NAME, of bad, good" in str(error)
    done = invoke(str(tmp_path / "good"), "--out", str(tmp_path / "new" / "x.html"))
    assert done.exception is None
    assert (tmp_path / "new" / "x.html").exists()


def test_two_runs_stand_side_by_side(tmp_path: Path) -> None:
    stored_run(tmp_path, "good")
    stored_run(tmp_path, "bad")
    out = tmp_path / "x.html"
    done = invoke(str(tmp_path / "good"), "--beside", str(tmp_path / "bad"), "--out", str(out))
    assert "no difference but in times" in done.output
    assert out.read_text().count('class="data"') == 2


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    stored_run(tmp_path, "good")
    (tmp_path / "file").write_text("")
    error = invoke(str(tmp_path / "good"), "--out", str(tmp_path / "file" / "x.html")).exception
    assert "cannot be written" in str(error)


def test_a_journal_on_disk_of_a_fake_becomes_a_page(tmp_path: Path) -> None:
    asked = StreamCodec().encode(PeerProperties(correlation_id=1, properties={"product": "shop"}))
    with (
        RabbitMQStream(journal_dir=tmp_path / "journal", journal_frames=True) as broker,
        socket.create_connection((broker.host, broker.port)) as client,
    ):
        client.sendall(asked)
        broker.wait_for(kind="PeerPropertiesResponse")
    out = tmp_path / "x.html"
    assert invoke(str(tmp_path / "journal"), "--out", str(out)).exception is None
    [document] = documents(out)
    [frame] = [row for row in document.rows if row.name == "PeerProperties"]
    assert "shop" in dict(frame.details)["fields"]


def test_texts_in_bytes_are_found() -> None:
    assert readable(b"tea") == "tea"
    assert readable(b"\x00\x00\x00\x07order 3") == "\\x00\\x00\\x00\\x07order 3"
    assert readable(b"\x00\x01\x02a") == "0x00010261"


def test_the_calls_of_a_test_have_a_lane_with_what_they_were_given(tmp_path: Path) -> None:
    with RabbitMQStream() as broker:
        log = CallLog(broker)
        broker.create_stream("orders")
        with pytest.raises(UsageError):
            broker.publish("bills", [b"tea"])
        document = of_journal("orders", broker.journal, {}, calls=log.found, failure="it was wrong\nand how")
    assert document.lanes[0] == Lane("test", "test")
    rows = [row for row in document.rows if row.lane == 0]
    assert [(row.what, row.name) for row in rows] == [
        *(("op", "create_stream"), ("end", "create_stream")),
        *(("op", "publish"), ("end", "publish"), ("failure", "the test failed")),
    ]
    assert rows[0].text == "name='orders'"
    assert rows[3].tap == "fail" and "UsageError" in rows[3].text
    assert rows[0].op == rows[1].op != rows[2].op
    assert rows[-1].text == "it was wrong" and document.rows[-1] is rows[-1]
    assert min(row.t for row in document.rows) == 0


def test_a_test_fails_when_it_did_and_not_with_the_last_frame() -> None:
    with RabbitMQStream() as broker:
        log = CallLog(broker)
        broker.create_stream("orders")
        ended_s = broker.now + 5.0
        document = of_journal("o", broker.journal, {}, calls=log.found, failure="no", ended_s=ended_s)
    assert document.rows[-1].what == "failure"
    assert document.rows[-1].t - document.rows[-2].t >= 5.0


def test_no_credentials_are_shown_of_what_a_call_was_given() -> None:
    def add_user(name: str, password: str, tags: tuple[str, ...] = ()) -> None: ...

    assert (
        arguments_of(add_user, ("bob", "s3cret"), {"tags": ("a",)}) == "name='bob', password='***', tags='a'"
    )


def test_what_a_method_calls_itself_is_no_call_of_the_test() -> None:
    with RabbitMQStream() as broker:
        log = CallLog(broker)
        broker.reset()  # forgets faults, restarts ...
    assert [call.name for call in log.found] == ["reset"]
    assert log.found[0].ended_s is not None


def test_a_fake_that_is_listened_to_goes_away() -> None:
    broker = RabbitMQStream()
    CallLog(broker)
    gone = weakref.ref(broker)
    del broker
    gc.collect()
    assert gone() is None


def test_subscriptions_are_told_from_sessions() -> None:
    run = RunJournal(None, "shop", protocol="rabbitmq-stream")
    run.did(0.5, "broker.create_stream(name='orders')")
    run.logged(1.05, "it warns")
    run.op(1.0, "s1", 1, "connect", "invoke")
    run.op(1.1, "reader", 2, "subscribe", "invoke", key="orders")
    run.op(1.2, "reader", None, "deliver", "ok", key="orders", value="aa")
    run.close()
    document = of_log(run.log(), [("its standard error", "oh")])
    assert [(lane.name, lane.kind) for lane in document.lanes] == [
        *(("test", "test"), ("s1", "session"), ("reader", "subscription"), ("broker", "broker"))
    ]
    line = document.rows.pop(2)
    assert (line.what, line.name, line.text) == ("log", "standard error", "it warns")
    assert [row.lane for row in document.rows] == [0, 1, 2, 2]
    assert (document.rows[0].what, document.rows[0].name) == ("did", "broker.create_stream")
    assert document.logs == [("its standard error", "oh")]


def test_a_frame_says_for_how_many_messages_it_is_what() -> None:
    journal = Journal(FRAMES)
    journal.add(1.0, "c1", Tap.IN, publish(1, [(1, b"tea"), (2, b"milk")]), 30)
    published(7, journal, 1.2)
    rows = of_journal("orders", journal, {}).rows
    assert [row.counts for row in rows] == [[("publish", 2)], [("publish", 1)], [("confirm", 1)]]
