"""Defects in opening, configuring and closing queues (catalogue section BMQ-2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import quote

from msgspec.structs import replace

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.blazingmq.link import Link
from conformance.clients.reference.blazingmq.queues import LIMITS, Queue, Queues
from conformance.clients.reference.blazingmq.requests import Make, Requests
from conformance.clients.reference.kit import ClientError
from fakebrokers.blazingmq.codes import QueueFlag
from fakebrokers.blazingmq.frames import CloseQueue, ConfigureStream, Response
from fakebrokers.blazingmq.schema import HandleParameters, SubQueueId

HOURS_S = 10_000.0


# requests


@mutant("opens-behind-the-close", tag="life-cycle", breaks=["B8", "X7"])
class OpensBehindTheClose(Queues):
    """Goes on to open a queue although the session was closed while the broker answered."""

    def check_wanted(self) -> None:
        pass


@mutant("no-request-timers", tag="life-cycle", breaks=["B8", "B18", "X8", "X7"])
class NoRequestTimers(Requests):
    """Waits for answers without end."""

    async def ask(self, make: Make, timeout: float, late: object = None) -> object:
        return await super().ask(make, HOURS_S)


@mutant("answers-to-nobody-are-fatal", tag="life-cycle", breaks=["B7", "B19", "X8", "X9"])
class AnswersToNobodyAreFatal(Requests):
    """An answer that no request waits for ends the connection."""

    def answered(self, frame: Response) -> None:
        if frame.r_id is not None and frame.r_id not in self.waiting:
            self.link.end(ClientError("protocol", "an answer to nobody"))
        else:
            super().answered(frame)


@mutant("answers-without-number-are-for-all", tag="life-cycle", breaks=["B7", "B19"])
class AnswersWithoutNumberAreForAll(Requests):
    """An answer without a number ends every request."""

    def answered(self, frame: Response) -> None:
        if frame.r_id is None:
            self.end(ClientError("refused", "an answer without a number"))
        else:
            super().answered(frame)


@mutant("requests-outlive-their-connection", tag="life-cycle", breaks=["B18", "B19", "X6", "X2", "X8"])
class RequestsOutliveTheirConnection(Requests):
    """Requests wait for their time-out though their connection, or the session, has ended."""

    def end(self, error: ClientError) -> None:
        return


# open


@mutant("writers-open-for-both", tag="wire", breaks=["B4"])
class WritersOpenForBoth(Queues):
    """Opens every queue for read too."""

    def parameters(self, queue: Queue) -> HandleParameters:
        found = super().parameters(queue)
        if found.sub_id_info is not None:
            return found
        return replace(found, flags=found.flags | QueueFlag.READ, read_count=1)


@mutant("queue-options-are-ignored", tag="wire", breaks=["B4"])
class QueueOptionsAreIgnored(Queues):
    """Configures every reader with the defaults."""

    async def ask_configure(self, queue: Queue, options: Mapping[str, int] | None, timeout: float) -> None:
        await super().ask_configure(queue, None if options is None else LIMITS, timeout)


@mutant("refusal-ends-the-restore", tag="life-cycle", breaks=["B4", "B18"])
class RefusalEndsTheRestore(Queues):
    """Opens no further queue after a loss once the broker has refused one."""

    async def open_again(self, queue: Queue) -> None:
        if self.client.link is self.refused_by:
            return
        try:
            await super().open_again(queue)
        except ClientError as error:
            if error.kind != "connection":
                self.refused_by = self.client.link
            raise

    refused_by: Link | None = None


@mutant("open-before-configured", tag="life-cycle", breaks=["B4"])
class OpenBeforeConfigured(Queues):
    """Reports a reader as open before it is configured."""

    async def begin(self, queue: Queue, deadline: float) -> None:
        self.client.runtime.tasks.spawn(super().begin(queue, deadline))


@mutant("queue-ids-repeat", tag="wire", breaks=["B5", "B7"])
class QueueIdsRepeat(Queues):
    """Queues that are opened at the same time get the same number."""

    def next_id(self) -> int:
        self.last_id = len(self.by_name)
        while self.numbered(self.last_id) is not None:
            self.last_id += 1
        return self.last_id


@mutant("opens-despite-refusal", tag="life-cycle", breaks=["B7", "B19"])
class OpensDespiteRefusal(Queues):
    """Takes a refused queue for open."""

    async def ask_open(self, queue: Queue, timeout: float) -> None:
        try:
            await super().ask_open(queue, timeout)
        except ClientError as error:
            if error.kind != "refused":
                raise


@mutant("opens-what-is-open", tag="life-cycle", breaks=["B5"])
class OpensWhatIsOpen(Queues):
    """Opens a queue that is open under a second number."""

    def check(self, uri: str, flags: frozenset[str]) -> None:
        self.opening.clear()
        if not any(queue.uri == uri for queue in self.by_name.values()):
            super().check(uri, flags)


@mutant("remembers-closed-queues", tag="data", breaks=["B5"])
class RemembersClosedQueues(Queues):
    """A queue that was opened again is used under its old number."""

    def find(self, name: str) -> Queue:
        found = super().find(name)
        first: dict[str, Queue] = self.__dict__.setdefault("first", {})
        return first.setdefault(name, found)


@mutant("quotes-uris", tag="wire", breaks=["B5", "B19"])
class QuotesUris(Queues):
    """Sends whatever URI it is given, with escapes of its own."""

    def check(self, uri: str, flags: frozenset[str]) -> None:
        if uri in self.opening or any(queue.uri == uri for queue in self.by_name.values()):
            raise ClientError("invalid", f"{uri} is open")

    def parameters(self, queue: Queue) -> HandleParameters:
        found = super().parameters(queue)
        return replace(found, uri=quote(found.uri, safe=":/"))


@mutant("refused-configure-closes", tag="data", breaks=["B4"])
class RefusedConfigureCloses(Queues):
    """Forgets a queue whose new configuration was refused."""

    async def configure(self, name: str, options: Mapping[str, int], timeout: float) -> None:
        try:
            await super().configure(name, options, timeout)
        except ClientError:
            self.by_name.pop(name, None)
            raise


@mutant("always-the-default-app", tag="wire", breaks=["B4", "B6", "B14"])
class AlwaysTheDefaultApp(Queues):
    """Never names the application of a fanout queue."""

    def parameters(self, queue: Queue) -> HandleParameters:
        return replace(super().parameters(queue), sub_id_info=SubQueueId() if queue.app_id else None)


# close


@mutant("closes-without-draining", tag="wire", breaks=["B6"])
class ClosesWithoutDraining(Queues):
    """Closes a reader without taking back its configuration."""

    async def shut(self, queue: Queue, timeout: float) -> None:
        await self.ask_close(queue, timeout)


@mutant("closes-with-other-flags", tag="wire", breaks=["B6"])
class ClosesWithOtherFlags(Queues):
    """closeQueue has no flags."""

    async def ask_close(self, queue: Queue, timeout: float) -> None:
        parameters = replace(self.parameters(queue), flags=0)
        requests = self.client.link_now().requests
        await requests.ask(lambda number: CloseQueue(number, parameters, is_final=True), timeout)


@mutant("no-close-without-drain-answer", tag="life-cycle", breaks=["B6", "B8"])
class NoCloseWithoutDrainAnswer(Queues):
    """Gives up a close where draining is not answered."""

    async def shut(self, queue: Queue, timeout: float) -> None:
        if queue.read:
            await self.ask_configure(queue, None, timeout / 2)
        await self.ask_close(queue, timeout / 2)


@mutant("closes-what-is-closed", tag="life-cycle", breaks=["B6"])
class ClosesWhatIsClosed(Queues):
    """Sends closeQueue for a queue that is closed."""

    def find(self, name: str) -> Queue:
        closed: dict[str, Queue] = self.__dict__.setdefault("closed", {})
        found = closed.pop(name, None) if name not in self.by_name else None
        return found or super().find(name)

    async def close(self, name: str, timeout: float) -> None:
        queue = self.find(name)
        await self.shut(queue, timeout)
        if self.by_name.pop(name, None) is not None:
            self.__dict__.setdefault("closed", {})[name] = queue


# after a loss


@mutant("forgets-queues", tag="life-cycle", breaks=["B4", "B5", "X6"])
class ForgetsQueues(Queues):
    """Opens no queue again after a loss."""

    async def restore(self) -> None:
        self.end()


@mutant("reopen-refusals-go-untold", tag="life-cycle", breaks=["B19"])
class ReopenRefusalsGoUntold(Queues):
    """Does not report a queue that could not be opened again."""

    async def restore(self) -> None:
        for queue in self.by_name.values():
            try:
                await self.open_again(queue)
            except ClientError:
                continue
            finally:
                queue.ready.set()


@mutant("each-step-has-all-the-time", tag="life-cycle", breaks=["B18", "X8"])
class EachStepHasAllTheTime(Queues):
    """Gives each of the two requests of an open the time that is for both."""

    given_s = 0.0

    async def ask_open(self, queue: Queue, timeout: float) -> None:
        self.given_s = timeout
        await super().ask_open(queue, timeout)

    async def begin(self, queue: Queue, deadline: float) -> None:
        await super().begin(queue, self.client.runtime.clock.deadline(self.given_s))


@mutant("tiers-are-left-out", tag="wire", breaks=["B4"])
class TiersAreLeftOut(Queues):
    """Opens the queue of that name in the domain without its tier."""

    def parameters(self, queue: Queue) -> HandleParameters:
        found = super().parameters(queue)
        return replace(found, uri=re.sub(r"[.]~[^/]+/", "/", found.uri))


@mutant("priorities-begin-at-zero", tag="wire", breaks=["B4"])
class PrioritiesBeginAtZero(Queues):
    """Sends a negative consumer priority as 0."""

    def newer(self, queue: Queue, options: Mapping[str, int] | None) -> Callable[[int], ConfigureStream]:
        if options is not None:
            options = {**options, "consumer_priority": max(0, options["consumer_priority"])}
        return super().newer(queue, options)


@mutant("posts-before-the-queue-is-open", tag="data", breaks=["B9", "X6"])
class PostsBeforeTheQueueIsOpen(Queues):
    """Posts at once after a reconnect, to a broker that does not know the queue yet."""

    def lost(self) -> None:
        return


@mutant("changes-before-the-queue-is-open", tag="life-cycle", breaks=["B6", "X6"])
class ChangesBeforeTheQueueIsOpen(Queues):
    """Configures and closes a queue at once after a reconnect, before the broker knows it again."""

    async def usable_again(self, queue: Queue, timeout: float) -> None:
        return
