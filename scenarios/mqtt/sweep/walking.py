"""Walks of MQTT; see `conformance.run.walks`."""

from __future__ import annotations

from conformance.run.walks import LOSSY, Walk, walks
from scenarios.mqtt.sweep._shared import LASTING, PROBE, PUBLISH, put, subscribed, watched


async def begin(walk: Walk) -> None:
    """A session that lasts, or not, with a subscription."""
    await walk.context.connect(**walk.pick({}, LASTING))
    await subscribed(walk.context, on_message={"mode": "event", "sleep_ms": walk.pick(0, 0, 20)})


async def end(walk: Walk) -> None:
    """See that messages still come, then the finale."""
    await watched(walk.context, "last")
    await walk.context.finale("publish", **PROBE)


async def publish(walk: Walk) -> None:
    """One message, with any QoS."""
    qos = walk.pick(0, 1, 1, 2, 2)
    if qos and walk.pick(True, True, False):
        walk.begin("publish", walk.pick(2.0, 8.0), body=walk.body(), qos=qos, **PUBLISH)
    else:
        walk.begin("publish", 8.0, target=PUBLISH["target"], wait=False, body=walk.body(), qos=qos)


async def others(walk: Walk) -> None:
    """Messages of another client."""
    put(walk.context, *[f"m{walk.number}/{i}" for i in range(walk.pick(1, 3))], qos=walk.pick(0, 1, 1))


STEPS = ((6, publish), (4, others), (1, Walk.kill), (1, Walk.rest), (2, Walk.ended))
WALKS = walks(15, STEPS, begin, end, role="publisher") + walks(
    15, (*STEPS, *LOSSY), begin, end, role="publisher", name="rough-walk"
)
