"""Defects with filters (catalogue section RMQS-8)."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.rabbitmq_stream.consuming import Consuming
from conformance.clients.reference.rabbitmq_stream.publisher import Entry, Publisher
from conformance.clients.reference.rabbitmq_stream.publishing import Publishing
from conformance.clients.reference.rabbitmq_stream.subscription import Subscription
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.codes import OffsetType
from fakebrokers.rabbitmq_stream.frames import Publish


@mutant("filter-values-stay-here", tag="wire", breaks=["R7", "R21"])
class FilterValuesStayHere(Publisher):
    """Publishes messages without their filter values."""

    def frame(self, entries: Sequence[Entry]) -> Publish:
        for entry in entries:
            entry.filter_value = None
        return super().frame(entries)


@mutant("no-value-is-a-word", tag="data", breaks=["R4", "R21"])
class NoValueIsAWord(Publisher):
    """Sends a word as the filter value of messages that have none."""

    def frame(self, entries: Sequence[Entry]) -> Publish:
        for entry in entries:
            if entry.filter_value is None:
                entry.filter_value = "None"
        return super().frame(entries)


@mutant("filter-of-the-client-alone", tag="wire", breaks=["R9", "R21"])
class FilterOfTheClientAlone(Subscription):
    """Does not send its filter to the server, and gets everything."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.properties = {
            key: text for key, text in self.properties.items() if not key.startswith("filter.")
        }


@mutant("unfiltered-are-unwanted", tag="data", breaks=["R9", "R21"])
class UnfilteredAreUnwanted(Subscription):
    """Never asks for messages without a filter value."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.properties = {key: text for key, text in self.properties.items() if key != "match-unfiltered"}


@mutant("filter-of-the-server-alone", tag="data", breaks=["R10", "R21"])
class FilterOfTheServerAlone(Subscription):
    """Delivers all messages of the chunks that the server lets through."""

    def renew(self) -> None:
        super().renew()
        self.accepts = lambda body: True


@mutant("nothing-wanted-nothing-given-back", tag="data", breaks=["R10", "R11", "R21"])
class NothingWantedNothingGivenBack(Subscription):
    """Gives no credit back for chunks in which no message is wanted."""

    def processed(self, chunk: Chunk) -> None:
        if any(self.accepts(body) for _, body in self.records(chunk, lambda error: None)):
            super().processed(chunk)


@mutant("filter-is-for-once", tag="data", breaks=["R9", "R21"])
class FilterIsForOnce(Consuming):
    """Subscribes without the filter after a loss, and delivers what comes."""

    async def place(self, subscription: Subscription, deadline: float) -> None:
        await super().place(subscription, deadline)
        if subscription.generation == 1 and any(key.startswith("filter.") for key in subscription.properties):
            own = subscription.accepts
            subscription.properties = {}
            subscription.accepts = lambda body: subscription.generation > 1 or own(body)


@mutant("filter-values-for-everybody", tag="wire", breaks=["R20", "R21"])
class FilterValuesForEverybody(Publishing):
    """Publishes filter values to servers that do not know them."""

    def check_filters(self, publisher: Publisher) -> None:
        pass


@mutant("skips-to-the-time", tag="data", breaks=["R9", "R21"])
class SkipsToTheTime(Subscription):
    """Takes the time from which a subscription was to begin for an offset, once a chunk has come of which
    nothing was wanted."""

    def processed(self, chunk: Chunk) -> None:
        asked = self.position()
        super().processed(chunk)
        if asked.type == OffsetType.TIMESTAMP:
            self.next_offset = max(asked.value or 0, self.next_offset or 0)
