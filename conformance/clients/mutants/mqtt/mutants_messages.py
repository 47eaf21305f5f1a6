"""Defects in messages: what is sent again, what is reported, what is delivered and acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from msgspec.structs import replace

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.mqtt.client import MqttClient
from conformance.clients.reference.mqtt.exchanges import Exchanges, Outgoing
from conformance.clients.reference.mqtt.link import Link
from conformance.clients.reference.mqtt.subscriptions import Arrived, Subscription, Subscriptions
from fakebrokers.core.frames import Frame
from fakebrokers.mqtt.frames import Puback, Pubcomp, Publish, Pubrec, Pubrel

FEW = 10  #: messages that wait for their callback
LOSS_EVERY = 50

# the client's own


@mutant("never-again", tag="data", breaks=["Q3"])
class NeverAgain(Exchanges):
    """Sends nothing again in a session that has lasted."""

    def again(self) -> Iterator[Frame]:
        return iter(())


@mutant("copies-without-dup", tag="wire", breaks=["Q4"])
class CopiesWithoutDup(Exchanges):
    """Sends again without DUP."""

    def copy(self, frame: Publish) -> Publish:
        return frame


@mutant("copies-under-new-ids", tag="data", breaks=["Q3", "Q6"])
class CopiesUnderNewIds(Exchanges):
    """Gives a message that is sent again another packet id."""

    def again(self) -> Iterator[Frame]:
        old, self.outgoing = self.outgoing, {}
        for message in old.values():
            frame = replace(message.frame, packet_id=self.next_id(), dup=True)
            self.outgoing[frame.packet_id] = Outgoing(frame)
            yield frame


@mutant("newest-is-sent-again-first", tag="data", breaks=["Q3"])
class NewestIsSentAgainFirst(Exchanges):
    """Sends again from the newest message to the oldest."""

    def again(self) -> Iterator[Frame]:
        return reversed(list(super().again()))


@mutant("copies-are-short", tag="data", breaks=["Q3", "X12"])
class CopiesAreShort(Exchanges):
    """Sends only the first byte of a message again."""

    def copy(self, frame: Publish) -> Publish:
        return replace(super().copy(frame), payload=frame.payload[:1])


@mutant("copies-are-not-retained", tag="data", breaks=["Q3"])
class CopiesAreNotRetained(Exchanges):
    """Sends a message that is to be retained again as one that is not."""

    def copy(self, frame: Publish) -> Publish:
        return replace(super().copy(frame), retain=False)


@mutant("always-dup", tag="wire", breaks=["Q4"])
class AlwaysDup(Exchanges):
    """Has DUP in the first copy, too."""

    def publish(self, topic: str, payload: bytes, qos: int, *, retain: bool) -> Publish:
        return replace(super().publish(topic, payload, qos, retain=retain), dup=bool(qos))


@mutant("publish-after-pubrec", tag="data", breaks=["Q5"])
class PublishAfterPubrec(Exchanges):
    """Begins an exchange of QoS 2 again that was halfway."""

    def again(self) -> Iterator[Frame]:
        for message in self.outgoing.values():
            message.is_received = False
            yield self.copy(message.frame)


@mutant("done-at-pubrec", tag="data", breaks=["Q5"])
class DoneAtPubrec(MqttClient):
    """Takes PUBREC for the end."""

    def came(self, link: Link, frame: object) -> None:
        super().came(link, frame)
        if isinstance(frame, Pubrec):
            self.acknowledged(Pubcomp(frame.packet_id))


@mutant("no-pubrel", tag="wire", breaks=["Q5"])
class NoPubrel(Exchanges):
    """Does not answer PUBREC."""

    def on_pubrec(self, frame: Pubrec) -> Frame | None:
        super().on_pubrec(frame)
        return None


@mutant("ids-collide", tag="data", breaks=["Q6"])
class IdsCollide(Exchanges):
    """Does not look whether a packet id is in use."""

    def is_used(self, number: int) -> bool:
        return False


@mutant("acks-by-position", tag="data", breaks=["X8", "Q10"])
class MqttAcksByPosition(MqttClient):
    """Takes an acknowledgement for that of the oldest message that somebody waits for."""

    def acknowledged(self, frame: Puback | Pubcomp) -> None:
        self.exchanges.acknowledged(frame)
        for number, answer in self.waiting.items():
            if not answer.done():
                answer.set_result(None)
                del self.waiting[number]
                return


@mutant("acks-without-confirm", tag="data", breaks=["Q10"])
class AcksWithoutConfirm(MqttClient):
    """Takes a message for stored as soon as it was written."""

    async def publish(
        self, topic: str, payload: bytes, qos: int, *, retain: bool, timeout: float
    ) -> int | None:
        work = asyncio.ensure_future(super().publish(topic, payload, qos, retain=retain, timeout=timeout))
        await asyncio.sleep(0)
        if work.done():
            return work.result()
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
        return self.exchanges.last_id


@mutant("close-acks", tag="data", breaks=["Q10", "X7"])
class CloseAcks(MqttClient):
    """Reports what waits at the close as acknowledged."""

    def forget(self, error: ClientError) -> None:
        for answer in self.waiting.values() if error.kind == "closed" else ():
            if not answer.done():
                answer.set_result(None)
        super().forget(error)


@mutant("close-leaves-waiters", tag="data", breaks=["X7"])
class MqttCloseLeavesWaiters(MqttClient):
    """Closes, and reports nothing to those who wait."""

    def forget(self, error: ClientError) -> None:
        if error.kind != "closed":
            super().forget(error)


@mutant("publish-without-an-end", tag="life-cycle", breaks=["X8"])
class PublishWithoutAnEnd(MqttClient):
    """Waits for an acknowledgement for ever."""

    async def publish(
        self, topic: str, payload: bytes, qos: int, *, retain: bool, timeout: float
    ) -> int | None:
        return await super().publish(topic, payload, qos, retain=retain, timeout=10_000.0)


@mutant("offline-is-acked", tag="data", breaks=["Q10"])
class OfflineIsAcked(MqttClient):
    """Takes a message for stored that it could not send."""

    async def publish(
        self, topic: str, payload: bytes, qos: int, *, retain: bool, timeout: float
    ) -> int | None:
        if not self.is_open and not self.runtime.is_closed:
            return None
        return await super().publish(topic, payload, qos, retain=retain, timeout=timeout)


@mutant("one-in-fifty-is-lost", tag="data", breaks=["X9"], aims=["NET-4.06"])
class MqttOneInFiftyIsLost(MqttClient):
    """Loses a message now and then, and takes it for stored."""

    count = 0

    async def publish(
        self, topic: str, payload: bytes, qos: int, *, retain: bool, timeout: float
    ) -> int | None:
        self.count += 1
        if self.count % LOSS_EVERY == 0:
            return None
        return await super().publish(topic, payload, qos, retain=retain, timeout=timeout)


@mutant("text-only", tag="data", breaks=["X12"])
class TextOnly(Exchanges):
    """Takes payloads for text."""

    def publish(self, topic: str, payload: bytes, qos: int, *, retain: bool) -> Publish:
        return super().publish(topic, payload.decode(errors="replace").encode(), qos, retain=retain)


@mutant("never-retains", tag="data", breaks=["Q9"])
class NeverRetains(Exchanges):
    """Publishes without RETAIN."""

    def publish(self, topic: str, payload: bytes, qos: int, *, retain: bool) -> Publish:
        return super().publish(topic, payload, qos, retain=False)


# those of others


@mutant("delivers-at-each-publish", tag="data", breaks=["Q5"])
class DeliversAtEachPublish(Exchanges):
    """Delivers a message with QoS 2 as often as it comes."""

    def on_publish(self, frame: Publish) -> tuple[Publish | None, Frame | None]:
        return frame, None if frame.qos < 2 else Pubrec(frame.packet_id)

    def on_pubrel(self, frame: Pubrel) -> tuple[Publish | None, Frame]:
        return None, Pubcomp(frame.packet_id)


@mutant("delivers-at-each-pubrel", tag="data", breaks=["Q5"])
class DeliversAtEachPubrel(Exchanges):
    """Delivers a message with QoS 2 as often as it is released."""

    def on_pubrel(self, frame: Pubrel) -> tuple[Publish | None, Frame]:
        return self.received.get(frame.packet_id), Pubcomp(frame.packet_id)


@mutant("acknowledges-on-arrival", tag="data", breaks=["Q10"])
class MqttAcknowledgesOnArrival(Subscriptions):
    """Says PUBACK before the callback has run."""

    def take(self, link: Link, frame: Publish) -> None:
        if frame.qos == 1:
            link.send(Puback(frame.packet_id))
        super().take(link, frame)

    def acknowledge(self, arrived: Arrived, *, raised: bool) -> None:
        return


@mutant("acknowledges-twice", tag="wire", breaks=["Q10"])
class MqttAcknowledgesTwice(Subscriptions):
    """Says PUBACK twice."""

    def acknowledge(self, arrived: Arrived, *, raised: bool) -> None:
        super().acknowledge(arrived, raised=raised)
        super().acknowledge(arrived, raised=raised)


@mutant("never-acknowledges", tag="data", breaks=["Q10"])
class NeverAcknowledges(Subscriptions):
    """Says no PUBACK."""

    def acknowledge(self, arrived: Arrived, *, raised: bool) -> None:
        return


@mutant("acknowledges-by-pubrec", tag="wire", breaks=["Q10"])
class AcknowledgesByPubrec(Subscriptions):
    """Answers a message with QoS 1 as one with QoS 2."""

    def acknowledge(self, arrived: Arrived, *, raised: bool) -> None:
        if arrived.frame.qos == 1:
            arrived.link.send(Pubrec(arrived.frame.packet_id))


@mutant("drops-when-slow", tag="data", breaks=["Q10"])
class DropsWhenSlow(Subscriptions):
    """Drops messages when ten wait for their callback."""

    def take(self, link: Link, frame: Publish) -> None:
        if len(self.feed) < FEW:
            super().take(link, frame)
        else:
            link.send(Puback(frame.packet_id))


@mutant("newest-first", tag="data", breaks=["Q10"])
class MqttNewestFirst(Subscriptions):
    """Delivers what has come last first."""

    def take(self, link: Link, frame: Publish) -> None:
        self.feed.put_first([Arrived(link, frame)])


@mutant("hash-is-not-the-parent", tag="data", breaks=["Q12"])
class HashIsNotTheParent(Subscriptions):
    """Does not find the topic of the level above a ``#``."""

    def fits(self, each: Subscription, topic: str) -> bool:
        return super().fits(each, topic) and each.name != f"{topic}/#"


@mutant("first-callback-for-all", tag="data", breaks=["Q12"])
class FirstCallbackForAll(Subscriptions):
    """Gives every message to whoever has subscribed first."""

    def fits(self, each: Subscription, topic: str) -> bool:
        return each is self.active[0]


@mutant("retain-is-lost", tag="data", breaks=["Q9"])
class RetainIsLost(Subscriptions):
    """Does not say which messages were retained."""

    async def called(self, subscription: Subscription, frame: Publish) -> bool:
        return await super().called(subscription, replace(frame, retain=False))


class _DeafLink(Link):
    def data_received(self, data: bytes) -> None:
        client = self.owner
        if isinstance(client, MqttClient) and (held := client.__dict__.get("held")) is not None:
            held.append((self, data))
        else:
            super().data_received(data)


@mutant("one-thread-for-all", tag="life-cycle", breaks=["X10"], aims=["NET-3.07"], also=[_DeafLink])
class MqttOneThreadForAll(Subscriptions):
    """Reads nothing while the callback of a message runs."""

    async def called(self, subscription: Subscription, frame: Publish) -> bool:
        held: list[tuple[Link, bytes]] = []
        self.client.__dict__["held"] = held
        done = await super().called(subscription, frame)
        self.client.__dict__["held"] = None
        for link, data in held:
            link.data_received(data)
        return done
