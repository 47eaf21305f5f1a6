"""The table of protocols."""

from __future__ import annotations

import pytest

import fakebrokers
from fakebrokers.errors import UsageError
from fakebrokers.protocol import PROTOCOLS, ProtocolInfo, find_protocol


def test_names_that_scripts_rely_on() -> None:
    assert list(PROTOCOLS) == ["rabbitmq-stream", "blazingmq", "pzq", "narconi", "moleculer"]
    fixtures = [info.fixture for info in PROTOCOLS.values()]
    assert fixtures == ["rabbitmq_stream", "blazingmq", "pzq", "narconi", "moleculer"]
    servers = [info.server for info in PROTOCOLS.values()]
    assert servers == ["RabbitMQStream", "BlazingMQ", "PZQ", "Narconi", "Moleculer"]


@pytest.mark.parametrize(
    "info", [info for info in PROTOCOLS.values() if info.available], ids=lambda i: i.name
)
def test_the_table_agrees_with_the_server(info: ProtocolInfo) -> None:
    server = info.load()
    assert (server.__name__, server.protocol, server.default_port) == (info.server, info.name, info.port)
    assert getattr(fakebrokers, info.server) is server


@pytest.mark.parametrize(
    ("word", "meant"),
    [("rabitmq-stream", "rabbitmq-stream"), ("rabbitmq_stream", "rabbitmq-stream"), ("Blazing", "blazingmq")],
)
def test_a_wrong_name_gets_the_closest(word: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"no protocol '{word}'; did you mean '{meant}'") as caught:
        find_protocol(word)
    assert str(caught.value).endswith("Choose from: rabbitmq-stream, blazingmq, pzq, narconi, moleculer")


def test_a_strange_name_gets_the_list() -> None:
    with pytest.raises(UsageError, match=r"no protocol 'xyz'\. Choose from: rabbitmq-stream, blazingmq"):
        find_protocol("xyz")


def test_a_server_that_is_not_there() -> None:
    info = ProtocolInfo("carrier-pigeon", "Pigeon", 1, "")
    assert not info.available
    with pytest.raises(UsageError, match="this version of fakebrokers cannot fake carrier-pigeon; it can: "):
        info.load()


def test_an_attribute_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Pigeon'"):
        _ = fakebrokers.Pigeon
