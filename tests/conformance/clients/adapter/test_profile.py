"""Which ops a role needs; and how the ops of a sixth protocol join."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from conformance.clients.adapter import profile, reference, schema
from conformance.clients.adapter.messages import Hello
from conformance.clients.adapter.ops.define import Arguments, Op, Profile
from conformance.clients.adapter.profile import (
    all_ops,
    capabilities,
    capability_ops,
    core_ops,
    missing_ops,
    ops_of,
    profile_of,
    profiles,
    role_ops,
)
from fakebrokers.errors import UsageError
from fakebrokers.protocol import protocol_names

CONSUMER = {"next", "subscribe", "unsubscribe"}
QUEUES = {"bmq.close_queue", "bmq.open_queue"}


def hello(*roles: str, ops: set[str], settles: str = "none") -> Hello:
    return Hello("a", "l", "1", "x", [], list(roles), sorted(ops), settles=settles)  # type: ignore[arg-type]


def test_what_every_adapter_needs() -> None:
    assert core_ops() == {"close", "connect", "echo", "hello", "reset", "shutdown", "state"}


@pytest.mark.parametrize(
    ("protocol", "needed"),
    [
        (
            "rabbitmq-stream",
            {
                "publisher": {"publish"},
                "consumer": CONSUMER,
                "admin": {"rmqs.create", "rmqs.delete", "rmqs.metadata"},
            },
        ),
        ("blazingmq", {"publisher": {"publish"} | QUEUES, "consumer": CONSUMER | QUEUES}),
        ("pzq", {"publisher": {"publish"}, "consumer": CONSUMER, "monitor": {"pzq.monitor"}}),
        (
            "narconi",
            {
                "publisher": {"publish"},
                "consumer": CONSUMER,
                "admin": {"narc.delete_queue", "narc.ensure_queue"},
                "http": {"narc.post", "narc.take"},
            },
        ),
        (
            "moleculer",
            {
                "caller": {"mol.call"},
                "service": {"mol.serve"},
                "emitter": {"mol.broadcast", "mol.emit"},
                "listener": {"mol.listen"},
            },
        ),
    ],
)
def test_what_a_role_needs(protocol: str, needed: dict[str, set[str]]) -> None:
    assert role_ops(protocol) == needed
    assert list(role_ops(protocol)) == list(profile_of(protocol).roles)


def test_every_protocol_has_a_profile() -> None:
    assert list(profiles())[:5] == protocol_names()[:5]
    assert [each.protocol for each in profiles().values()] == list(profiles())


def test_a_role_without_its_ops_is_incomplete() -> None:
    core = set(core_ops())
    assert missing_ops(hello(ops=core), "pzq") == []
    assert missing_ops(hello("monitor", ops=core - {"echo"}), "pzq") == ["echo", "pzq.monitor"]
    consumer = core | CONSUMER
    assert missing_ops(hello("consumer", ops=consumer), "pzq") == []
    assert missing_ops(hello("consumer", ops=consumer, settles="manual"), "pzq") == ["settle"]
    assert missing_ops(hello("sorcerer", ops=core), "pzq") == []


def test_a_capability_may_need_an_op() -> None:
    assert capability_ops() == {
        "callback_raise": "raise_next",
        "cancel": "cancel",
        "clock_offset": "set_clock",
        "counter_seed": "set_counter",
        "stats": "stats",
    }
    assert set(capability_ops()) <= set(capabilities())
    assert {"concurrent", "sac", "compression.zlib", "caller_key", "ack_to", "streams"} <= set(capabilities())


class Whisper(Arguments, frozen=True):
    """Say something quietly."""

    spec = Op("toy.whisper", needed_by=("whisperer",))

    session: str
    words: str


@pytest.fixture
def whispering(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    module = ModuleType("whispering")
    module.PROFILE = Profile(  # type: ignore[attr-defined]
        protocol="whispers",
        roles=("whisperer",),
        ops={"toy.whisper": Whisper},
        capabilities={"murmur": "quieter still"},
    )
    monkeypatch.setitem(sys.modules, "whispering", module)
    monkeypatch.setattr(profile, "_REGISTERED", {})
    profile.register("whispers", "whispering")
    yield
    monkeypatch.undo()
    for known in (profile_of, profiles, ops_of, all_ops):
        known.cache_clear()


@pytest.mark.usefixtures("whispering")
def test_a_sixth_protocol_joins_by_its_module_and_one_line() -> None:
    assert role_ops("whispers") == {"whisperer": {"toy.whisper"}}
    assert missing_ops(hello("whisperer", ops=set(core_ops())), "whispers") == ["toy.whisper"]
    assert "toy.whisper" in all_ops()
    assert capabilities()["murmur"] == "quieter still"
    assert "publish" in ops_of("whispers")
    document = schema.schema()
    assert document["$defs"]["toy.whisper.args"]["required"] == ["session", "words"]
    assert "whispers" in document["$defs"]["hello.result"]["properties"]["protocols"]["items"]["enum"]
    table = reference.guide("<!-- written from the types: whispers -->\n<!-- end -->")
    row = "| `toy.whisper` | ●whisperer | `session`, `words` | `{}` | Say something quietly. |"
    assert row in table.splitlines()


@pytest.mark.usefixtures("whispering")
def test_the_ops_of_a_protocol_are_in_one_module() -> None:
    profile.register("whispers", "whispering")
    with pytest.raises(UsageError, match="known already, from whispering"):
        profile.register("whispers", "elsewhere")


def test_a_protocol_that_nobody_judges_has_the_core_only() -> None:
    assert list(ops_of("smoke signals")) == list(ops_of("pzq"))[: len(ops_of("smoke signals"))]
    assert role_ops("smoke signals") == {}
    assert "smoke signals" not in profiles()


def test_shared_code_names_no_protocol() -> None:
    folder = Path(profile.__file__).parent
    shared = ["profile.py", "schema.py", "reference.py", "answers.py", "typed.py", "deadline.py", "check.py"]
    places = [folder / name for name in shared] + [
        folder / "ops" / f"{name}.py" for name in ("define", "core")
    ]
    for path in places:
        assert not [name for name in protocol_names()[:5] if name in path.read_text("utf-8").lower()], path
