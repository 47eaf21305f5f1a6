"""What base scripts and walks give to clients: every argument of every op, or a reason why none gives it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, get_args

import pytest
from msgspec import structs

from conformance.clients.adapter.profile import ops_of
from conformance.run.inprocess import runner
from conformance.run.material import material_of
from conformance.run.specs import Spec

PROTOCOLS = ("blazingmq", "moleculer", "narconi", "pzq", "rabbitmq-stream")
WALKS = 3  #: of each kind; the others take the same steps

HARNESS = "the harness asks for it, before or after a run"
NEXT = "messages are reported at once, so that it is known when the library delivers them"
SESSION = "each op gives its own; it is for libraries where all ops of a session have one"
SAME = "it writes the same bytes as `text` or `gen`"
LOGIN = "this protocol has no login"
RAISES = "`raise_next` lets the same callbacks raise"
SLEEPS = (
    "`sleep_ms` makes all callbacks slow; that one of them is slow is asked of PZQ, where messages expire"
)
ACK = "nothing is acknowledged in this protocol"
NOT_THERE = "this protocol has nothing of the kind"

#: Why no base gives an argument; an argument as a pattern, which stands for all inside it too.
ANYWHERE: Mapping[str, str] = {
    "hello": HARNESS,
    "echo": HARNESS,
    "reset": HARNESS,
    "shutdown": HARNESS,
    "cancel": "`Adapter.cancel` asks for it",
    "next": NEXT,
    "connect.roles": "it is a hint for adapters, and asks the library for nothing",
    "connect.options.listen": "rules judge what listeners get; a client without any is judged by NET-3.08",
    "connect.options.tls": "fakes in memory speak no TLS; NET-1.14 and NET-1.15 ask for it",
    "raise_next.session": "no base has two sessions whose callbacks raise",
    "*.on_message.block": "it would block the fake, which is on the same thread",
    "*.b64": SAME,
}
REASONS: Mapping[str, Mapping[str, str]] = {
    "blazingmq": {
        "connect.options.user": LOGIN,
        "connect.options.password": LOGIN,
        "connect.options.timeouts": SESSION,
        "connect.options.compression": SESSION,
        "publish.headers": NOT_THERE,
        "publish.key": NOT_THERE,
        "publish.properties.value.*": SAME,
        "subscribe.options": "`bmq.open_queue` has them",
        "*.sleep_on": SLEEPS,
        "unsubscribe.drain": "`bmq.close_queue` drains",
    },
    "moleculer": {
        "connect.options.user": LOGIN,
        "connect.options.password": LOGIN,
        "connect.options.serializer": "the decoders of the judge read JSON alone; MOL-1.16 has the others",
        "mol.serve.actions.stream.*": SAME,
        "*.auto_settle": ACK,
        "*.sleep_on": SLEEPS,
    },
    "narconi": {
        "connect.options.user": LOGIN,
        "connect.options.password": LOGIN,
        "publish.properties": NOT_THERE,
        "publish.key": NOT_THERE,
        "narc.ensure_queue.options": "the server knows no options of queues",
        "*.sleep_on": SLEEPS,
        "*.raise_on": RAISES,
    },
    "pzq": {
        "connect.options.user": LOGIN,
        "connect.options.password": LOGIN,
        "publish.headers": NOT_THERE,
        "publish.properties": NOT_THERE,
        "raise_next": "`raise_on` lets the callbacks of messages raise, and there are no others",
        "unsubscribe.drain": NOT_THERE,
    },
    "rabbitmq-stream": {
        "publish*.headers": "bodies are bytes in the formats of all libraries but one",
        "publish*.properties": "bodies are bytes in the formats of all libraries but one",
        "*.auto_settle": ACK,
        "*.sleep_on": SLEEPS,
    },
}


def members(kind: Any, place: str) -> Iterator[str]:
    """The dotted names of the arguments of an op, and of what is inside them; a name that the script chooses,
    of a property or an action, is left out."""
    for member in structs.fields(kind):
        name = f"{place}.{member.encode_name}"
        yield name
        for inner in objects_in(member.type):
            yield from members(inner, name)


def objects_in(kind: Any) -> Iterator[Any]:
    """The types of objects in a type."""
    if hasattr(kind, "__struct_fields__"):
        yield kind
    for inner in get_args(kind):
        yield from objects_in(inner)


def given(value: Any, place: str, known: set[str]) -> Iterator[str]:
    """The names of what is in a value that was given."""
    if isinstance(value, list):
        for each in value:
            yield from given(each, place, known)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            name = f"{place}.{key}" if f"{place}.{key}" in known else place
            yield name
            yield from given(each, name, known)


def bases_of(protocol: str) -> list[str]:
    """The bases of a protocol, but for walks of a kind of which there are enough."""
    names = material_of(protocol).bases
    return [name for name in names if "walk-" not in name or int(name.rpartition("-")[2]) < WALKS]


def given_by_bases(protocol: str, known: set[str]) -> tuple[set[str], set[str]]:
    """What the bases give, and which ops the correct client has."""
    found: set[str] = set()
    ops: Iterable[str] = ()
    for base in bases_of(protocol):
        case = runner(protocol)(Spec(protocol, base))
        assert case.contract.hello is not None
        ops = case.contract.hello.ops
        for op, args in [*((done.op, done.args) for done in case.ops), *case.inside]:
            found |= {op, *given(args, op, known)}
    return found, set(ops)


def is_of(pattern: str, name: str) -> bool:
    """Whether a reason is for this argument, or for one that it is in."""
    parts = name.split(".")
    return any(fnmatchcase(".".join(parts[:count]), pattern) for count in range(1, len(parts) + 1))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_argument_is_given_or_has_a_reason(protocol: str) -> None:
    known = {name for op, kind in ops_of(protocol).items() for name in (op, *members(kind, op))}
    found, ops = given_by_bases(protocol, known)
    reasons = {**ANYWHERE, **REASONS[protocol]}
    offered = {name for name in known if any(name == op or name.startswith(f"{op}.") for op in ops)}
    lacking = sorted(offered - found)
    assert [name for name in lacking if not any(is_of(pattern, name) for pattern in reasons)] == []
    own = REASONS[protocol]
    assert [pattern for pattern in own if not any(is_of(pattern, name) for name in lacking)] == []
