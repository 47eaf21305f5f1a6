"""A consumer's position in a stream, and what it is sent next (docs/protocols/rabbitmq-stream.md, 8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.codes import OffsetType
from fakebrokers.rabbitmq_stream.filters import parse_filter
from fakebrokers.rabbitmq_stream.log import Log
from fakebrokers.rabbitmq_stream.stream import Stream


class Subscription:
    """One subscription of one connection; implements `stream.Reader`.

    Args:
        wake: Called with the subscription and `now` when there may be something to send.

    Attributes:
        stream: What it reads.
        subscription_id: The client's number for it.
        properties: As they came with Subscribe.
        spec: Where Subscribe wanted to start: offset type and value.
        credit: Chunks that may still be sent.
        send_limit: Nothing new is begun while the credit is not above this. None: chunks are sent as long as
            the credit is not 0, so one below it has no end.
        position: Offset of what is read next; None: no reader, as with an inactive single active consumer.
        at_end: The last attempt to read has found nothing more.
    """

    def __init__(
        self,
        stream: Stream,
        subscription_id: int,
        spec: tuple[OffsetType, int],
        credit: int,
        send_limit: int | None,
        properties: Mapping[str, str],
        wake: Callable[[Subscription, float], None],
    ) -> None:
        self.stream = stream
        self.subscription_id = subscription_id
        self.spec = spec
        self.credit = credit
        self.send_limit = send_limit
        self.properties = dict(properties)
        self._wake = wake
        self.position: int | None = None
        self.at_end = False
        self._segment = 0  # where the one begins that is being read
        self._outlived: Log | None = None
        self._filter = parse_filter(self.properties)
        self._tracking_chunks = self.properties.get("chunk_selector") == "all"
        self._sending = False

    @property
    def name(self) -> str | None:
        """The consumer's name, the same for a whole group."""
        return self.properties.get("name")

    @property
    def active(self) -> bool:
        """Whether it has a reader."""
        return self.position is not None

    def tell(self, now: float) -> None:
        """There may be something to send."""
        self._wake(self, now)

    def attach(self, spec: tuple[OffsetType, int] | None, now: float) -> None:
        """Begin to read at an offset specification; None: at the one of Subscribe."""
        kind, value = self.spec if spec is None or spec[0] == OffsetType.NONE else spec
        self.detach()
        self.position = self.stream.resolve(kind, value, now)
        self._segment = self.stream.log.segment_of(self.position)

    def detach(self) -> None:
        """Stop reading; the credit stays."""
        self.position = None
        self._outlived = None
        self._sending = False

    def outlive(self, segment: Log) -> None:
        """Go on in a segment that was dropped, if it is the one that is being read."""
        if self.position is not None and segment.segment_of(0) == self._segment:
            self._outlived = segment

    def add_credit(self, credit: int) -> None:
        """Add credit; the number may be negative, as the server reads it signed."""
        self.credit += credit

    def next_chunk(self) -> Chunk | None:
        """The next chunk that may be sent, for one credit; None: nothing for now.

        Once begun, chunks are given out until the credit or the stream is at its end; to begin, the
        credit has to be above `send_limit`.
        """
        self.at_end = False
        if self.position is None or not self._has_credit():
            self._sending = False
            return None
        found = self._find(self.position)
        if found is None:
            self.at_end = True
            self._sending = False
            return None
        log, chunk_id = found
        chunk = log.read(chunk_id)
        self.position = chunk.next_offset
        self.credit -= 1
        self._sending = True
        trailer = log.trailer_of(chunk_id) if self._tracking_chunks else b""
        # who asks for all chunks is sent the trailer too, though the header counts the data only
        return replace(chunk, data=chunk.data + trailer, data_length=len(chunk.data)) if trailer else chunk

    def _has_credit(self) -> bool:
        if self.send_limit is None:
            return self.credit != 0
        return self.credit > (0 if self._sending else self.send_limit)

    def _find(self, position: int) -> tuple[Log, int] | None:
        if self._outlived is not None:
            found = self._find_in(self._outlived, position)
            if found is not None:
                return self._outlived, found
            self._outlived = None
        log = self.stream.log
        found = self._find_in(log, position)
        if found is not None:
            self._segment = log.segment_of(found)
        return None if found is None else (log, found)

    def _find_in(self, log: Log, position: int) -> int | None:
        end = self.stream.committed_offset
        while (chunk_id := log.next_id(position)) is not None and chunk_id < end:
            if self._wants(log, chunk_id):
                return chunk_id
            position = self.position = chunk_id + 1
        return None

    def _wants(self, log: Log, chunk_id: int) -> bool:
        if not log.is_user(chunk_id):
            return self._tracking_chunks
        if self._filter is None:
            return True
        values = log.filter_of(chunk_id)
        return (values is not None and self.stream.false_positives) or self._filter.accepts(values)
