"""Which ops and capabilities there are, and which ops a role cannot do without."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.adapter.messages import Hello

CORE_OPS = frozenset({"close", "connect", "echo", "hello", "reset", "shutdown", "state"})

#: Ops that each client role has to offer (ADAPTER.md, Ops).
ROLE_OPS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "rabbitmq-stream": {
        "publisher": frozenset({"publish"}),
        "consumer": frozenset({"next", "subscribe", "unsubscribe"}),
        "admin": frozenset({"rmqs.create", "rmqs.delete", "rmqs.metadata"}),
    },
    "blazingmq": {
        "publisher": frozenset({"bmq.close_queue", "bmq.open_queue", "publish"}),
        "consumer": frozenset({"bmq.close_queue", "bmq.open_queue", "next", "subscribe", "unsubscribe"}),
    },
    "pzq": {
        "publisher": frozenset({"publish"}),
        "consumer": frozenset({"next", "subscribe", "unsubscribe"}),
        "monitor": frozenset({"pzq.monitor"}),
    },
    "narconi": {
        "publisher": frozenset({"publish"}),
        "consumer": frozenset({"next", "subscribe", "unsubscribe"}),
        "admin": frozenset({"narc.delete_queue", "narc.ensure_queue"}),
        "http": frozenset({"narc.post", "narc.take"}),
    },
    "moleculer": {
        "caller": frozenset({"mol.call"}),
        "service": frozenset({"mol.serve"}),
        "emitter": frozenset({"mol.broadcast", "mol.emit"}),
        "listener": frozenset({"mol.listen"}),
    },
}

OPTIONAL_OPS = frozenset(
    {
        "abort",
        "cancel",
        "flush",
        "publish_many",
        "raise_next",
        "set_clock",
        "set_counter",
        "settle",
        "stats",
        "bmq.configure_queue",
        "mol.ping",
        "mol.registry",
        "mol.stop",
        "mol.unserve",
        "rmqs.credit",
        "rmqs.declare_publisher",
        "rmqs.delete_publisher",
        "rmqs.query_offset",
        "rmqs.query_sequence",
        "rmqs.store_offset",
    }
)

ALL_OPS = CORE_OPS.union(OPTIONAL_OPS, *(ops for roles in ROLE_OPS.values() for ops in roles.values()))

CAPABILITIES = frozenset(
    {
        "ack_timeout",
        "ack_to",
        "auto_reconnect",
        "callback_raise",
        "callback_sleep",
        "caller_key",
        "cancel",
        "clock_offset",
        "compression.zlib",
        "concurrent",
        "counter_seed",
        "crc",
        "dedup",
        "disable_balancer",
        "encoding",
        "endpoints",
        "filter_expired",
        "keepalive",
        "lazy_subscribe",
        "named_publisher",
        "offset_without_consumer",
        "properties",
        "reentrant",
        "retry",
        "sac",
        "sasl.challenge",
        "stats",
        "stop_in_callback",
        "streams",
        "subentry",
        "tls",
    }
)

#: A capability that is worth nothing without its op.
CAPABILITY_OPS: Mapping[str, str] = {
    "callback_raise": "raise_next",
    "cancel": "cancel",
    "clock_offset": "set_clock",
    "counter_seed": "set_counter",
    "stats": "stats",
}


def missing_ops(hello: Hello, protocol: str) -> list[str]:
    """What a declared role needs and the adapter does not offer; such an adapter is incomplete."""
    needed = set(CORE_OPS)
    for role in hello.roles:
        needed |= ROLE_OPS.get(protocol, {}).get(role, frozenset())
        if role == "consumer" and hello.settles != "none":
            needed.add("settle")
    return sorted(needed - set(hello.ops))
