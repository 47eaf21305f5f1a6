"""What is registered, and what each protocol says of itself."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fakebrokers
from fakebrokers import description as registry
from fakebrokers.core.frames import Frame, FrameSpec, Role
from fakebrokers.core.wire import Wire
from fakebrokers.errors import UsageError, instead_of
from fakebrokers.protocol import (
    Protocol,
    find_protocol,
    fixture_name,
    is_available,
    protocol_names,
    protocols,
    register,
)
from tests import toy
from tests.judged import JUDGED

ROOT = Path(fakebrokers.__file__).parents[1]


def test_names_that_scripts_rely_on() -> None:
    names = protocol_names()[:5]
    assert names == ["rabbitmq-stream", "blazingmq", "pzq", "narconi", "moleculer"]
    fixtures = [fixture_name(name) for name in names]
    assert fixtures == ["rabbitmq_stream", "blazingmq", "pzq", "narconi", "moleculer"]


def test_clients_of_all_protocols_are_judged() -> None:
    assert {each.name for each in SHIPPED} == {each.name for each in JUDGED}


def test_what_the_protocols_say_of_themselves() -> None:
    said = {each.name: (each.server_name, each.port, each.ordered) for each in protocols()}
    assert (
        said.items()
        >= {
            "rabbitmq-stream": ("RabbitMQStream", 5552, True),
            "pzq": ("PZQ", 11131, False),
            "narconi": ("Narconi", 8080, False),
        }.items()
    )


@pytest.mark.parametrize("protocol", protocols(), ids=lambda each: each.name)
def test_the_server_speaks_its_protocol(protocol: Protocol) -> None:
    server = protocol.load()
    assert (server.__name__, server.protocol) == (protocol.server_name, protocol)
    assert getattr(fakebrokers, protocol.server_name) is server


#: Another process knows nothing of what a test has registered here.
SHIPPED = [each for each in protocols() if each.server.startswith("fakebrokers.")]


@pytest.mark.parametrize("protocol", SHIPPED, ids=lambda each: each.name)
def test_importing_one_fake_loads_no_other(protocol: Protocol) -> None:
    name = protocol.server_name
    code = f"import sys; from fakebrokers import {name}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    packages = {each.server.rpartition(".server:")[0] for each in SHIPPED}
    spoken = {f"fakebrokers.{wire.name}" for wire in protocol.wires} & packages  # a bus that carries packets
    assert packages & set(done.stdout.split()) == {protocol.server.rpartition(".server:")[0]} | spoken


def test_few_shared_modules_name_a_protocol() -> None:
    """Docstrings may give examples; what serves all protocols reads it from the protocol, or its subject."""
    words = {word for each in SHIPPED for word in (each.name, each.folder, each.server_name)}
    folders = tuple(each.folder for each in SHIPPED)
    found = []
    for path in sorted(
        one for top in ("fakebrokers", "conformance", "scenarios") for one in (ROOT / top).rglob("*.py")
    ):
        place = path.relative_to(ROOT).as_posix()
        own = any(name in place for name in folders) or place.startswith("conformance/clients/adapters/")
        if not own and words & _words(path):
            found.append(place)
    assert len(found) <= 10, found


def _words(path: Path) -> set[str]:
    """What a module says outside of docstrings: names, attributes, parts of modules' names and texts, without
    addresses, whose schemes are words of their own."""
    tree = ast.parse(path.read_text("utf-8"))
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    said = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told
    ]
    said += [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    said += [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            said += [getattr(node, "module", None) or "", *(each.name for each in node.names)]
    return {word for text in said for word in re.split(r"[^\w-]+", re.sub(r"\w+://\S*", "", text))}


def test_two_frames_of_one_kind_on_one_wire() -> None:
    class Ping(Frame, frozen=True):
        spec = FrameSpec(Role.HEARTBEAT)

    class OtherPing(Frame, frozen=True):
        kind = "Ping"
        spec = FrameSpec(Role.REQUEST)

    with pytest.raises(ValueError, match="two frames have the kind 'Ping'"):
        Wire("both", [Ping, OtherPing])
    assert Wire("one", [Ping]).build("Ping", {}, "x") == Ping()
    assert Wire("other", [OtherPing]).build("Ping", {}, "x") == OtherPing()


def test_another_project_registers_a_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))
    register("toy", "tests.toy")
    register("toy", "tests.toy")
    assert find_protocol("toy") is toy.PROTOCOL
    assert fakebrokers.Toy is toy.Toy
    with pytest.raises(UsageError, match=r"there is a protocol 'toy' already, in tests\.toy"):
        register("toy", "elsewhere")


def test_a_wire_that_is_not_there() -> None:
    assert find_protocol("pzq").wire("zmq").port == 11131
    with pytest.raises(UsageError, match="pzq has no wire 'zmp'; did you mean 'zmq'"):
        find_protocol("pzq").wire("zmp")


@pytest.mark.parametrize(
    ("word", "meant"),
    [("rabitmq-stream", "rabbitmq-stream"), ("rabbitmq_stream", "rabbitmq-stream"), ("Blazing", "blazingmq")],
)
def test_a_wrong_name_gets_the_closest(word: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"no protocol '{word}'; did you mean '{meant}'") as caught:
        find_protocol(word)
    assert str(caught.value).endswith(f"Choose from: {', '.join(protocol_names())}")


def test_a_strange_name_gets_the_list() -> None:
    with pytest.raises(UsageError, match=r"no protocol 'xyz'\. Choose from: rabbitmq-stream, blazingmq"):
        find_protocol("xyz")


def test_a_protocol_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._REGISTERED, "carrier-pigeon", "fakebrokers.pigeon.protocol")
    assert not is_available("carrier-pigeon")
    with pytest.raises(UsageError, match="this version of fakebrokers cannot fake carrier-pigeon; it can: "):
        find_protocol("carrier-pigeon")


def test_an_attribute_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Pigeon'"):
        _ = fakebrokers.Pigeon


def test_a_wire_without_a_usual_port_takes_any() -> None:
    assert find_protocol("moleculer").wire("tcp").port == 0
    assert [find_protocol("moleculer").wire(name).port for name in ("nats", "redis", "mqtt")] == [
        4222,
        6379,
        1883,
    ]


def test_of_many_words_an_error_names_those_that_are_like_the_wrong_one() -> None:
    words = [f"RMQS-{section}.{number:02}" for section in range(9) for number in range(30)]
    told = instead_of("rmqs_3.077", words)
    assert told.startswith("; did you mean 'RMQS-3.07'? The closest of 270: RMQS-3.07, ")
    assert len(told) < 150
    assert instead_of("xyz", words) == "."
