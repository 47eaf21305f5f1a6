"""Lines that a test, or a client in its process, logs: when, on the clock of a fake, and what."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from weakref import ref

import msgspec

from fakebrokers.journal.secrets import without_secrets
from fakebrokers.viewer.rows import Row, shortened

if TYPE_CHECKING:
    from fakebrokers.server import FakeServer

STANDARD_ERROR = "standard error"  #: the source of lines of a client's process
MOST_LINES = 5000  #: of one fake
MOST_LINE = 4000  #: characters of one


class LogLine(msgspec.Struct):
    """A message that was logged, of one line or several.

    Attributes:
        at_s: On the clock of the fake.
        source: Who wrote it, and of which level: ``rstream WARNING``.
    """

    at_s: float
    source: str
    text: str


class LogLines(logging.Handler):
    """Collects what reaches the root logger from now on, until it is closed.

    Attributes:
        found: In the order in which they were logged.
    """

    def __init__(self, server: FakeServer) -> None:
        super().__init__()
        self.found: list[LogLine] = []
        self._server = ref(server, lambda _: self.close())
        logging.getLogger().addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        server = self._server()
        if server is None or len(self.found) >= MOST_LINES:
            return
        try:
            text = str(without_secrets(self.format(record)))
        except Exception:  # a call with wrong arguments: logging has a way to say so
            self.handleError(record)
            return
        source = f"{record.name} {record.levelname}"
        self.found.append(LogLine(server.now, source, shortened(text, MOST_LINE)))

    def close(self) -> None:
        logging.getLogger().removeHandler(self)
        super().close()


def line_row(line: LogLine, began_s: float, lane: int) -> Row:
    """A line as a row.

    Args:
        began_s: When the journal began, on the clock of the fake.
    """
    first = line.text.partition("\n")[0]
    details = [("written by", line.source), ("line", line.text)]
    return Row(line.at_s - began_s, "log", lane, "", line.source, first, "", [], 0, details)
