"""What a page is made of: rows, lanes, and values as the page shows them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from fakebrokers.core.frames import Frame
from fakebrokers.journal.secrets import REDACTED, redacted
from fakebrokers.journal.texts import as_json as encoded

BROKER, TEST = "broker", "test"  #: lanes and their kinds
LANES = 14  #: at most; what does not fit is in the last one
MOST_TEXT = 20_000  #: characters of a frame's fields, or of the arguments of a call, that the page carries
HEX_BYTES = 4096  #: of a piece of bytes that the page carries
BRIEF_TEXTS, BRIEF_TEXT = 2, 48  #: of a frame without keys that a line says, and characters of each
_FIRST, _LAST = 0x20, 0x7E  #: of ASCII that is shown

#: A group of keys, and consecutive numbers in it: the first and the last.
Span = tuple[str, int, int]


class Row(msgspec.Struct, array_like=True):
    """One line of the page.

    Attributes:
        t: Seconds since the run began.
        what: ``in``, ``out`` (frames from and to the client), ``state``, ``op``, ``end`` (of an op),
            ``did`` (by the test, without an end), ``event``, ``log`` (a line that was logged), ``bytes``,
            ``rule``, ``failure`` (of the test).
        lane: Number of its lane.
        tap: Where a frame was seen, if not everywhere: ``received``, ``heard``, ``said``, ``sent``.
        name: Kind of the frame, name of the op or of the rule.
        text: What else the line says.
        fault: Names of the faults that touched it.
        links: What it has in common with other rows of the same message.
        op: Of an op and its end, a number that both have; 0: none.
        details: For the panel beside the lines, label and text; ``rows`` holds numbers of rows that prove it.
        counts: Of a frame, for how many messages it has which role.
        span: What its links do not name: its messages may have any of these keys.
        scope: Where its keys count, if that is known, such as a stream: the same keys in another scope are
            those of other messages.
    """

    t: float
    what: str
    lane: int
    tap: str
    name: str
    text: str
    fault: str
    links: list[str]
    op: int
    details: list[tuple[str, str]]
    counts: list[tuple[str, int]] = []
    span: Span | None = None
    scope: str = ""


class Lane(msgspec.Struct):
    """A participant: ``test``, ``session``, ``subscription``, ``connection`` or ``broker``."""

    name: str
    kind: str


class Fact(msgspec.Struct):
    """One thing that the broker knew: what it said from which rows on; "" where it was gone."""

    name: str
    rows: list[int] = []
    texts: list[str] = []


class RunDocument(msgspec.Struct):
    """What the page shows of one run.

    Attributes:
        about: Label and text.
        logs: What the client, or the test, has written besides: where, and the text.
        is_of_the_wire: What the broker made of its frames is not known of all.
        facts: What the broker knew at each row, see `model`.
        is_reported: The fake itself has reported most of it.
        acks_each: A consumer acknowledges each message; not so where it stores an offset now and then.
    """

    title: str
    about: list[tuple[str, str]]
    lanes: list[Lane]
    rows: list[Row]
    logs: list[tuple[str, str]] = []
    is_of_the_wire: bool = False
    facts: list[Fact] = []
    is_reported: bool = False
    acks_each: bool = True


class Lanes:
    """Which lane is whose: that of the test, of sessions and subscriptions, of connections, of the broker.

    Args:
        sessions, subscriptions, connections: Their names.
        has_test: Whether something is known of what the test did.
    """

    def __init__(
        self,
        sessions: Sequence[str],
        connections: Sequence[str],
        subscriptions: Sequence[str] = (),
        *,
        has_test: bool = False,
    ) -> None:
        names = [(TEST, TEST)] * has_test
        names += [(name, "session") for name in sessions]
        names += [(name, "subscription") for name in subscriptions]
        names += [(name, "connection") for name in connections]
        self.all = [Lane(name or "client", kind) for name, kind in names[: LANES - 1]]
        if len(names) >= LANES:
            self.all[-1] = Lane(f"{len(names) - LANES + 2} others", "connection")
        self._last = max(0, len(self.all) - 1)
        self._of = {name: min(number, self._last) for number, name in enumerate(names)}
        self.all.append(Lane(BROKER, BROKER))

    def session(self, name: str) -> int:
        """Of a session or a subscription."""
        return self._of.get((name, "session"), self._of.get((name, "subscription"), 0))

    def connection(self, name: str) -> int:
        return self._of.get((name, "connection"), len(self.all) - 1)

    @property
    def test(self) -> int:
        return self._of.get((TEST, TEST), len(self.all) - 1)


def in_order(rows: Collection[Row]) -> list[Row]:
    """The rows as the page has them: by time, from 0 on; what is as early stays in its order."""
    first = min((row.t for row in rows), default=0.0)
    shift = min(first, 0.0)
    for row in rows:
        row.t = round(row.t - shift, 6)
    return sorted(rows, key=lambda row: row.t)


def brief(frame: Frame, known: Collection[str] = ()) -> str:
    """What tells a frame from others of its kind: the first texts in it, without credentials.

    Args:
        known: What is said of it already; then numbers and bytes say nothing more.
    """
    shown, found = redacted(frame, frame.spec), list[str]()
    for name in shown.__struct_fields__:
        value = getattr(shown, name)
        for each in value if isinstance(value, list | tuple) else (value,):
            is_text = isinstance(each, str) and each and not each.isdigit() and each not in known
            if is_text or (not known and isinstance(each, str | bytes) and each):
                text = str(readable(each))
                found.append(text if len(text) <= BRIEF_TEXT else f"{text[:BRIEF_TEXT]}…")
    return " ".join(found[:BRIEF_TEXTS])


def fields_of(frame: Frame) -> str:
    """All fields of a frame as JSON, without credentials."""
    shown = redacted(frame, frame.spec)
    fields = {name: getattr(shown, name) for name in shown.__struct_fields__}
    return as_json({**fields, **dict.fromkeys(frame.spec.secret, REDACTED)})


def shortened(text: str, most: int = MOST_TEXT) -> str:
    """A long text: its beginning, and how long it is."""
    if len(text) <= most:
        return text
    return f"{text[:most]} … (the first {most} of {len(text)} characters)"


def its_end(text: str, most: int) -> str:
    """A long text: its end, and how long it is."""
    if len(text) <= most:
        return text
    return f"(the last {most} of {len(text)} characters) … {text[-most:]}"


def hex_of(parts: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Details with pieces of bytes, and how many bytes of each the page does not have."""
    for part in parts:
        yield "hex", part[:HEX_BYTES].hex()
        if len(part) > HEX_BYTES:
            yield "bytes", f"the first {HEX_BYTES} of {len(part)}"


def as_json(value: Any) -> str:
    """A value as the page shows it."""
    return encoded(readable(value)).decode()


def readable(value: Any) -> Any:
    """Bytes as text where they are; with escapes where most of them are; else as hexadecimal digits."""
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        text = data.decode("utf-8", "replace")
        if text.isprintable() and "\ufffd" not in text:
            return text
        plain = sum(_FIRST <= byte <= _LAST for byte in data)
        if 2 * plain < len(data):
            return f"0x{data.hex()}"
        return "".join(chr(b) if _FIRST <= b <= _LAST else f"\\x{b:02x}" for b in data)
    if isinstance(value, Mapping):
        return {str(readable(name)): readable(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [readable(each) for each in value]
    if isinstance(value, msgspec.Struct):
        return {name: readable(getattr(value, name)) for name in value.__struct_fields__}
    return value
