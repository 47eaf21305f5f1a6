"""What a test did to its fakes, for the lane of the test: calls, what they were given, how they ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

import msgspec

from fakebrokers.core.calls import OF_ITS_LIFE, CallListener
from fakebrokers.core.onlooking import record_holdings
from fakebrokers.journal.secrets import without_secrets
from fakebrokers.viewer.log import LogLine, LogLines
from fakebrokers.viewer.rows import Row, readable, shortened

if TYPE_CHECKING:
    from fakebrokers.server import FakeServer

MOST_CALLS = 5000  #: kept of one fake; a loop that polls asks more often than anybody reads
MOST_ARGUMENTS = 4000  #: characters of what a call was given, or raised
ON_THE_LINE = 300  #: of them, that its line shows
#: What only computes, or reads what the page shows anyhow.
_DULL = frozenset({"client_holds", "journal_excerpt", "messages_url", "queue_url", "websocket_url"})


class Call(msgspec.Struct):
    """One call.

    Attributes:
        began_s, ended_s: On the clock of the fake; None while it has not ended.
        error: What it raised.
    """

    name: str
    given: str
    began_s: float
    ended_s: float | None = None
    error: str = ""


class CallLog(CallListener):
    """Listens to a fake for as long as it lives.

    Attributes:
        found: In the order in which they began.
        left_out: How many more there were.
    """

    def __init__(self, server: FakeServer) -> None:
        super().__init__(OF_ITS_LIFE | _DULL)
        self.found: list[Call] = []
        self.left_out = 0
        self._server = ref(server)
        self.listen(server, "")

    def begun(
        self, name: str, method: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]
    ) -> Call | None:
        if len(self.found) >= MOST_CALLS:
            self.left_out += 1
            return None
        call = Call(name.removeprefix("."), arguments_of(method, args, options), self._now)
        self.found.append(call)
        return call

    @property
    def _now(self) -> float:
        server = self._server()
        return 0.0 if server is None else server.now

    def ended(self, begun: Call | None, error: BaseException | None) -> None:
        if begun is not None:
            begun.ended_s = self._now
            raised = "" if error is None else f"{type(error).__name__}: {error}"
            begun.error = shortened(raised, MOST_ARGUMENTS)


_LOGS: WeakKeyDictionary[FakeServer, CallLog] = WeakKeyDictionary()
_LINES: WeakKeyDictionary[FakeServer, LogLines] = WeakKeyDictionary()


def listen(server: FakeServer) -> Callable[[], None]:
    """Write down from now on what is done to a fake, what it holds, and what is logged meanwhile.

    Returns:
        What ends the last of these; what was logged until then can still be asked for.
    """
    _LOGS[server] = CallLog(server)
    _LINES[server] = lines = LogLines(server)
    record_holdings(server)
    return lines.close


def lines_of(server: FakeServer) -> Sequence[LogLine]:
    """What was logged while somebody has listened."""
    return tuple(_LINES[server].found) if server in _LINES else ()


def calls_of(server: FakeServer) -> Sequence[Call]:
    """What was done to a fake, where somebody has listened."""
    return _LOGS[server].found if server in _LOGS else ()


def arguments_of(method: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]) -> str:
    """The arguments by name, without credentials."""
    try:
        bound: Mapping[str, Any] = signature(method).bind(*args, **options).arguments
    except (TypeError, ValueError):  # the call fails by itself
        bound = {**{str(number): each for number, each in enumerate(args)}, **options}
    shown = without_secrets(dict(bound))
    return shortened(", ".join(f"{name}={_text(each)}" for name, each in shown.items()), MOST_ARGUMENTS)


def _text(value: Any) -> str:
    if isinstance(value, bytes | str):
        return repr(readable(value))
    if isinstance(value, list | tuple):
        return (
            f"[{', '.join(map(_text, value))}]" if isinstance(value, list) else ", ".join(map(_text, value))
        )
    return getattr(value, "__name__", "") or str(value)


def call_rows(calls: Sequence[Call], began_s: float, lane: int) -> list[Row]:
    """Two rows for each call, from which the page makes a span.

    Args:
        began_s: When the journal began, on the clock of the fake.
    """
    rows, numbers = [], count(-1, -1)  # ops of clients count upwards
    for call in calls:
        number = next(numbers)
        details = [("called", f"{call.name}({call.given})")]
        if call.error:
            details.append(("raised", call.error))
        given = call.given if len(call.given) <= ON_THE_LINE else f"{call.given[:ON_THE_LINE]}…"
        rows.append(Row(call.began_s - began_s, "op", lane, "", call.name, given, "", [], number, details))
        if call.ended_s is not None:
            took = f"after {(call.ended_s - call.began_s) * 1000:.1f} ms"
            raised = call.error.partition("\n")[0][:ON_THE_LINE]
            said = f"raised {raised} {took}" if call.error else f"done {took}"
            tap = "fail" if call.error else ""
            rows.append(
                Row(call.ended_s - began_s, "end", lane, tap, call.name, said, "", [], number, details)
            )
    return rows
