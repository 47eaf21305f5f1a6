"""Lines that are logged have their place in time, and nothing that is collected harms those who log."""

from __future__ import annotations

import gc
import logging

import pytest

from fakebrokers import Narconi
from fakebrokers.viewer import of_journal
from fakebrokers.viewer.calls import calls_of, lines_of, listen
from fakebrokers.viewer.log import MOST_LINE, LogLines

LOG = logging.getLogger("shop")


def collecting() -> list[logging.Handler]:
    gc.collect()
    return [each for each in logging.getLogger().handlers if isinstance(each, LogLines)]


def test_a_line_is_between_the_calls_between_which_it_was_logged() -> None:
    with Narconi() as broker:
        end = listen(broker)
        broker.create_queue("shop", "orders")
        LOG.warning("sold\n%s", "x" * 2 * MOST_LINE)
        broker.publish("shop", "orders", b"tea")
        end()
        LOG.warning("too late")
        document = of_journal("x", broker.journal, {}, calls=calls_of(broker), lines=lines_of(broker))
    names = [row.name for row in document.rows if row.lane == 0]
    assert names == ["create_queue", "create_queue", "shop WARNING", "publish", "publish"]
    [line] = [row for row in document.rows if row.what == "log"]
    assert line.text == "sold"
    assert dict(line.details)["line"].endswith(f"(the first {MOST_LINE} of {2 * MOST_LINE + 5} characters)")


def test_a_line_that_cannot_be_made_is_reported_as_logging_does(capsys: pytest.CaptureFixture[str]) -> None:
    with Narconi() as broker:
        lines = LogLines(broker)
        lines.handle(logging.makeLogRecord({"msg": "%d", "args": ("no number",)}))
        lines.close()
    assert lines.found == []
    assert "Logging error" in capsys.readouterr().err


def test_a_fake_that_is_gone_is_listened_for_no_more() -> None:
    before = collecting()
    broker = Narconi()
    listen(broker)
    assert len(collecting()) == len(before) + 1
    del broker
    assert collecting() == before
