"""The table of what the documents say, and of the scenarios that judge it, has only holes with a name."""

from __future__ import annotations

import pytest

from ci.site import statement_page
from ci.site.statement_page import REASONS, Document, documents
from conformance.suite.catalogue import families
from conformance.suite.load import requirements
from tests.judged import JUDGED

each_document = pytest.mark.parametrize("document", documents(), ids=lambda each: each.protocol)


def test_each_protocol_has_its_document() -> None:
    assert {each.protocol for each in documents()} == {each.name for each in JUDGED}


@each_document
def test_each_scenario_that_is_named_exists_and_is_of_this_protocol(document: Document) -> None:
    known = requirements()
    wrong = [id for each in document for id in each.ids if id not in known]
    assert not wrong
    foreign = {id for each in document for id in each.ids if not _is_for(id, document.protocol)}
    assert not foreign


def _is_for(id: str, protocol: str) -> bool:
    family = families()[id.partition("-")[0]]
    if not family.protocol:
        return id in family.protocols[protocol].holds
    return family.protocol == protocol


@each_document
def test_each_statement_has_scenarios_or_one_of_the_named_reasons(document: Document) -> None:
    assert [each.says for each in document if bool(each.ids) == bool(each.reason)] == []
    assert {each.reason for each in document if each.reason} <= {*REASONS}


@each_document
def test_each_statement_stands_once(document: Document) -> None:
    for part in document.parts:
        said = [each.says for each in part.statements]
        assert len(said) == len({*said})
    assert [each.says for each in document if len(each.ids) != len({*each.ids})] == []


def test_no_other_line_is_empty() -> None:
    """A new one needs a reason that is known to everybody, or better a scenario."""
    assert [(each.says, each.reason) for document in documents() for each in document if not each.ids] == [
        ("the SDK's Session emits the event ack for whoever listens", "node-sdk"),
        ("the SDK's Session emits the event message besides", "node-sdk"),
        ("stream and seq mark the pieces of a stream", "event-stream"),
        ("or RabbitMQ chooses", "amqp"),
    ]


def test_the_page_has_a_line_for_each_statement() -> None:
    lines = [line for line in statement_page.page().splitlines() if line.startswith("| ")]
    tables = documents()
    assert len(lines) == sum(2 + len([*each]) for each in tables)
    assert (
        "| 9 Heartbeats | HEARTBEAT_REQ is answered at once | BMQ-5.01 Heartbeat answered at once<br>"
        in str(lines)
    )
