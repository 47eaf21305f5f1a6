"""Defects where two things meet: options of one op, filters of which one callback raises, two ends."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.mqtt.client import MqttClient
from conformance.clients.reference.mqtt.subscriptions import Subscription, Subscriptions
from fakebrokers.mqtt.frames import Publish


class _MqttClosingInTurn(MqttClient):
    async def close(self, timeout: float | None = None) -> None:
        async with self.__dict__.setdefault("turn", asyncio.Lock()):
            await super().close(timeout)


@mutant("ends-take-turns", tag="life-cycle", breaks=["X7"], also=[_MqttClosingInTurn])
class MqttEndsTakeTurns(Subscriptions):
    """Closes only when the server has answered each unsubscribe."""

    async def unsubscribe(self, subscription: Subscription, timeout: float) -> None:
        async with self.client.__dict__.setdefault("turn", asyncio.Lock()):
            await super().unsubscribe(subscription, timeout)


@mutant("first-failure-ends-a-message", tag="data", breaks=["X10"])
class FirstFailureEndsAMessage(Subscriptions):
    """Calls those whose filters a message fits one after the other, up to the first that raises."""

    async def called(self, subscription: Subscription, frame: Publish) -> bool:
        if self.__dict__.get("failed") is frame:
            return False
        done = await super().called(subscription, frame)
        if not done:
            self.__dict__["failed"] = frame
        return done


@mutant("exactly-once-is-not-kept", tag="wire", breaks=["X1"])
class ExactlyOnceIsNotKept(MqttClient):
    """Publishes with QoS 2 without the flag for what the server keeps."""

    async def publish(self, topic: str, payload: bytes, qos: int, *, retain: bool, timeout: float) -> Any:
        return await super().publish(topic, payload, qos, retain=retain and qos < 2, timeout=timeout)
