"""What fakes held is recorded of a run where a page may come of it, and changes nothing in the run."""

from __future__ import annotations

from conformance.run.case import Case
from conformance.run.document import document_of, seen_by_the_broker
from conformance.run.held import holdings_recorded
from conformance.run.inprocess import client_of, runner
from conformance.run.specs import Injection, Spec
from conformance.search.random.run import run as chaos_run
from conformance.search.random.schedule import Schedule
from fakebrokers.core.onlooking import can_be_watched
from fakebrokers.viewer.document import of_log
from tests.viewer.test_model import after, known

SPEC = Spec("rabbitmq-stream", "consume", (Injection("c1", "out", 9, "lost"),))
SCHEDULE = Schedule("narconi", "mixed", {"messages": 6, "publishers": 1, "consumers": 1}, seconds=1.0)


def passed(case: Case) -> list[tuple[str, str, int]]:
    """What passed; ports are others in each run."""
    return [(row.what, row.connection, len(row.data)) for row in case.rows if row.what in ("in", "out")]


def test_a_sweeps_page_has_what_the_fake_held() -> None:
    plain = runner("rabbitmq-stream")(SPEC)
    with holdings_recorded():
        case = runner("rabbitmq-stream")(SPEC)
    assert plain.log is None and case.log is not None
    document = document_of(case, "x", {}, besides=seen_by_the_broker(case.log))
    assert document.is_reported
    assert after(document, "SubscribeResponse")["stream S"].startswith("offsets 0..")
    derived = document_of(plain, "x", {}, besides=seen_by_the_broker(plain.log))
    assert not derived.is_reported
    assert passed(case) == passed(plain)


def test_a_page_of_chaos_has_what_the_fake_held_and_the_digest_stays() -> None:
    client = client_of("narconi")
    plain = chaos_run(client, SCHEDULE)
    with holdings_recorded():
        case = chaos_run(client, SCHEDULE)
    assert case.digest == plain.digest
    assert case.log is not None and plain.log is not None
    assert (of_log(case.log).is_reported, of_log(plain.log).is_reported) == (True, False)
    document = document_of(case, "x", {}, besides=seen_by_the_broker(case.log))
    assert document.is_reported
    assert any(name.startswith("queue ") for fact in [known(document)] for name in fact)


def test_only_fakes_and_proxies_can_be_watched() -> None:
    assert not can_be_watched(object())
