"""A session with a server in a file: JSON lines, each written at once, so that a cut run leaves whole ones.

    {"recording": 1, "protocol": "rabbitmq-stream", "wire": "stream", "scheme": "rabbitmq-stream"}
    {"at": 0.004, "connection": "c1", "what": "open"}
    {"at": 0.005, "connection": "c1", "what": "heard", "kind": "Create", "role": "request", "keys": [3], ...}
    {"at": 0.009, "connection": "c1", "what": "said", "kind": "CreateResponse", ..., "data": "AAAACoAN..."}
    {"at": 0.100, "connection": "c1", "what": "end", "by": "client"}

``heard`` is what reached the server, after all faults, and ``said`` what it said, before all faults. Of the
client's frames only what a replay tells them apart by is kept. Frames with credentials are kept without them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from fakebrokers.core.frames import Frame, Malformed, Role, kind_of
from fakebrokers.core.session import Codec
from fakebrokers.errors import UsageError
from fakebrokers.journal.secrets import redacted
from fakebrokers.proxy.frames import ServerBytes

VERSION = 1
_ROLES = frozenset(Role)


class Head(msgspec.Struct, frozen=True):
    """The first line.

    Attributes:
        recording: Version of the format.
        wire: Of the protocol.
        scheme: Of the server's URL.
    """

    recording: int
    protocol: str
    wire: str
    scheme: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9+.-]{0,40}\Z")] = "tcp"


class Line(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Any other line.

    Attributes:
        at: Seconds since the recording began.
        connection: ``c1``, ``c2`` ... in the order in which clients came.
        by: Who ended the connection.
        keys: Correlation keys of the frame, or of its items.
        scope: What they count in.
        items: Whether the frame is a batch.
        digest: Of the frame's fields without its keys and its credentials; of frames that were heard.
        data: The frame's bytes; of frames that were said.
    """

    at: float
    connection: str
    what: Literal["open", "heard", "said", "end"]
    by: Literal["", "client", "server"] = ""
    kind: str = ""
    role: str = ""
    keys: tuple[Any, ...] = ()
    scope: str = ""
    items: bool = False
    digest: str = ""
    data: bytes | None = None


def innermost(frame: Frame) -> Frame:
    """The frame inside of another one (a packet in a message of a bus), which says more; or itself."""
    inner = None if frame.spec.inside is None else frame.spec.inside.open(frame)
    return frame if inner is None else inner


def plain_key(key: Any) -> Any:
    """A key as it stands in the file: bytes as hexadecimal text, several parts as a list."""
    if isinstance(key, bytes):
        return key.hex()
    return [plain_key(each) for each in key] if isinstance(key, tuple | list) else key


def keys_of(frame: Frame) -> tuple[Any, ...]:
    """The frame's correlation keys, as they stand in the file."""
    spec = frame.spec
    if spec.items is not None:
        return tuple([plain_key(key) for key in spec.items.keys(frame)])
    return () if spec.key is None else (plain_key(getattr(frame, spec.key)),)


def scope_of(frame: Frame) -> str:
    """What the frame's keys count in; "" for the whole connection."""
    return str(getattr(frame, frame.spec.scope)) if frame.spec.scope else ""


def digest_of(frame: Frame) -> str:
    """The same for frames that say the same, whatever their keys."""
    left_out = {*frame.spec.secret, frame.spec.key}
    fields = [(name, getattr(frame, name)) for name in frame.__struct_fields__ if name not in left_out]
    return blake2b(repr(fields).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


class Recorder:
    """Writes a recording.

    Args:
        path: The file; what was there is lost.
        head: What its first line says.
        now: Gives the time, in seconds.
        goes_on: Instead add to what is there.

    Raises:
        OSError: It cannot be written.
    """

    def __init__(self, path: Path, head: Head, now: Callable[[], float], *, goes_on: bool = False) -> None:
        self._file = path.open("ab" if goes_on else "wb", buffering=0)
        self._now = now
        self._began = now()
        self._ended: set[str] = set()
        if not goes_on:
            self._put(head)

    def opened(self, connection: str) -> None:
        """A client has come."""
        self._add(connection, "open")

    def heard(self, connection: str, frame: Frame) -> None:
        """A frame of the client goes to the server."""
        frame = innermost(frame)
        self._add(connection, "heard", digest=digest_of(frame), **_described(frame, "in"))

    def said(self, connection: str, frame: Frame, codec: Codec) -> None:
        """The server has said a frame."""
        inner, data = innermost(frame), None
        if isinstance(frame, Malformed | ServerBytes):
            data = codec.encode(frame)
        elif not any(getattr(inner, name) for name in inner.spec.secret):
            shown = redacted(frame, frame.spec)
            data = codec.encode(frame) if shown is frame else codec.mend(codec.encode(shown))
        self._add(connection, "said", data=data, **_described(inner, "out"))

    def ended(self, connection: str, by: Literal["client", "server"]) -> None:
        """One side has ended the connection; only the first one counts."""
        if connection not in self._ended:
            self._ended.add(connection)
            self._add(connection, "end", by=by)

    def close(self) -> None:
        """The recording is complete."""
        self._file.close()

    def _add(self, connection: str, what: Literal["open", "heard", "said", "end"], **more: Any) -> None:
        at = round(self._now() - self._began, 6)
        self._put(Line(at=at, connection=connection, what=what, **more))

    def _put(self, line: Head | Line) -> None:
        if not self._file.closed:
            self._file.write(msgspec.json.encode(line) + b"\n")


def _described(frame: Frame, direction: str) -> dict[str, Any]:
    return {
        "kind": kind_of(frame),
        "role": frame.spec.role_in(direction).value,
        "keys": keys_of(frame),
        "scope": scope_of(frame),
        "items": frame.spec.items is not None,
    }


def is_recording(path: Path) -> bool:
    """Whether a file begins like a recording, of whatever version. A pipe is none, and is not waited for."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(20).replace(b" ", b"").startswith(b'{"recording":')


def read_recording(path: Path) -> tuple[Head, Sequence[Line]]:
    """The lines of a recording; one that was cut short at the end is left out.

    Raises:
        UsageError: It cannot be read, with the line and what was expected.
    """
    try:
        rows = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        head = msgspec.json.decode(rows[0], type=Head)
    except (msgspec.MsgspecError, RecursionError) as error:
        hint = "; a replay file of sweep or chaos is for 'fakebrokers replay'" if rows[0] == b"{" else ""
        raise UsageError(f"{path}:1: expected the head of a recording: {error}{hint}") from None
    if head.recording != VERSION:
        raise UsageError(f"{path}:1: expected a recording of version {VERSION}, got {head.recording}")
    decoder = msgspec.json.Decoder(Line)
    lines = []
    for number, row in enumerate(rows[1:-1], 2):  # after the last end of line is nothing, or a torn line
        try:
            line = decoder.decode(row)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise UsageError(f"{path}:{number}: expected a line of a recording: {error}") from None
        if line.what in ("heard", "said") and line.role not in _ROLES:
            raise UsageError(f"{path}:{number}: expected a role of frames, got {line.role[:40]!r}")
        lines.append(line)
    return head, lines
