"""The numbers of property schemas: each producer has its own, a queue's consumers get the queue's.

A producer that uses a set of property names for the first time says so with the lowest bit, and says the
number alone from then on. Consumers rely on that too, so a queue numbers the schemas of all its producers,
and each consumer gets a number with the bit when it is new to it (docs/protocols/blazingmq.md, 2.2).
"""

from __future__ import annotations

#: "In the new style, of no schema" and below: there is nothing to number.
_NO_SCHEMA = 1


class Known:
    """What a consumer knows of a schema; not `valid` any more once the number stands for another one."""

    def __init__(self) -> None:
        self.valid = True


#: What the queue calls a producer's schemas, by the producer's numbers.
Sent = dict[int, int]
#: What a consumer has been told of, by the queue's numbers.
Received = dict[int, Known]


class Learner:
    """The schemas of one queue. All ids are as on the wire: the number, and the bit."""

    def __init__(self) -> None:
        self._count = 0
        self._latest: dict[int, Known] = {}

    def collect(self, sent: Sent, schema_id: int) -> int:
        """The queue's id for one of a producer."""
        if schema_id <= _NO_SCHEMA:
            return schema_id
        number, new = schema_id >> 1, schema_id & 1
        if number not in sent:
            self._count += 1
            sent[number] = self._count
            new = 1
        return sent[number] << 1 | new

    def hand_out(self, received: Received, schema_id: int) -> int:
        """What a consumer is told for an id of the queue."""
        if schema_id <= _NO_SCHEMA:
            return schema_id
        number, new = schema_id >> 1, schema_id & 1
        known = received.get(number)
        if not new and known is not None and known.valid:
            return schema_id
        if new and number in self._latest:
            self._latest[number].valid = False
        received[number] = self._latest[number] = Known()
        return number << 1 | 1
