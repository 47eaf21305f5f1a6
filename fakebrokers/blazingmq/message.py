"""A message in a queue."""

from __future__ import annotations

import msgspec

from fakebrokers.blazingmq.expressions import Properties
from fakebrokers.blazingmq.options import UNLIMITED
from fakebrokers.blazingmq.properties import Content, PropertyType, read_content
from fakebrokers.errors import WireError

_POISONOUS = 0x40
_MOST_ATTEMPTS = 63


class Message(msgspec.Struct, eq=False, gc=False):
    """A message, and which apps still have to confirm it.

    Attributes:
        guid: Its 16 bytes.
        data: Properties and payload as they came.
        has_properties, schema_id, compression: What they look like.
        at: When it came, monotonic seconds.
        waiting: The apps that have not confirmed it; nobody left: it is gone from the queue.
    """

    # a queue may hold a million of them, and none holds what could hold it: the collector need not look

    guid: bytes
    data: bytes
    has_properties: bool
    schema_id: int
    compression: int
    at: float
    waiting: frozenset[str] = frozenset()
    _attempts: dict[str, int] | None = None
    _values: Properties | None = None

    @property
    def size(self) -> int:
        """Bytes of properties and payload, as they came."""
        return len(self.data)

    @property
    def content(self) -> Content:
        """Properties and payload.

        Raises:
            WireError: They cannot be read.
        """
        return read_content(
            self.data,
            has_properties=self.has_properties,
            schema_id=self.schema_id,
            compression=self.compression,
        )

    @property
    def payload(self) -> bytes:
        """The payload alone, inflated; raises as `content`."""
        return self.content.payload

    @property
    def values(self) -> Properties:
        """The properties that expressions can ask for: no binary ones, and none that cannot be read."""
        if self._values is None:
            self._values = self._readable_values()
        return self._values

    def _readable_values(self) -> Properties:
        try:
            properties = self.content.properties
        except WireError:
            return {}
        return {
            name: each.value
            for name, each in properties.items()
            if each.type is not PropertyType.BINARY and not isinstance(each.value, bytes)
        }

    def attempts_byte(self, app: str, most: int) -> int:
        """What remains for an app, as it stands on the wire; `most` is the domain's limit, 0: none."""
        whole = min(most, _MOST_ATTEMPTS) or UNLIMITED
        return whole if self._attempts is None else self._attempts.get(app, whole)

    def failed_attempts_left(self, app: str) -> int | None:
        """What remains for an app that clients were lost with it for; None: none were."""
        left = self._attempts.get(app) if self._attempts is not None else None
        return None if left is None else left & ~_POISONOUS

    def attempt_failed(self, app: str, most: int) -> bool:
        """A client was lost with it; whether no attempt remains.

        Args:
            most: The domain's limit; 0: none.
        """
        if not most:
            return False
        if self._attempts is None:
            self._attempts = {}
        left = (self._attempts.get(app, min(most, _MOST_ATTEMPTS)) & ~_POISONOUS) - 1
        self._attempts[app] = max(0, left) | _POISONOUS
        return left <= 0
