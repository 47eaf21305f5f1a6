"""What every protocol knows: the ops, and what a library may be able to do."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.clients.adapter.ops import control, messaging, session
from conformance.clients.adapter.ops.define import Arguments

OPS: Mapping[str, type[Arguments]] = {**session.OPS, **messaging.OPS, **control.OPS}

#: What a library may be able to do, whatever it speaks; the protocols add their own words.
CAPABILITIES: Mapping[str, str] = {
    "concurrent": "ops overlap (the default: only `false` says otherwise; synchronous libraries use threads)",
    "ack_timeout": "waiting for a confirm ends by the library's own timer; without it outcomes come by event "
    "only",
    "auto_reconnect": "the library reconnects by itself: true, false, or a list of `locator`, `producer`, "
    "`consumer` ([What reconnects](#what-reconnects))",
    "retry": "it repeats what failed",
    "dedup": "it drops what came twice",
    "endpoints": "it takes several addresses",
    "cancel": "a running op can be cancelled",
    "callback_raise": "callbacks may raise; not in languages where that ends the process whatever the "
    "library does",
    "callback_sleep": "callbacks may take long",
    "reentrant": "callbacks may run ops",
    "stop_in_callback": "callbacks may close the session",
    "properties": "message properties",
    "named_publisher": "publishers with a reference, for deduplication",
    "clock_offset": "its wall clock can be moved",
    "counter_seed": "its counters can be set",
    "stats": "it reports what it holds",
    "tls": "TLS connections",
}
