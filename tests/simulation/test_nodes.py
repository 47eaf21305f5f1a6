"""Nodes of one broker on hosts of their own: each has a name, a latency and partitions of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fakebrokers.errors import UsageError
from fakebrokers.simulation import Simulation, check_repeats

CLUSTERS = pytest.mark.parametrize("protocol", ["rabbitmq_stream", "blazingmq"])


def now() -> float:
    return asyncio.get_running_loop().time()


async def reaches(host: str, port: int) -> float:
    """Connect, and let go; how long that took."""
    begun = now()
    async with asyncio.timeout(30):
        _, writer = await asyncio.open_connection(host, port)
    writer.close()
    return now() - begun


async def reached(broker: Any) -> list[bool]:
    """Which nodes can be reached from here."""
    answers = await asyncio.gather(
        *(reaches(node.host, node.port) for node in broker.nodes), return_exceptions=True
    )
    assert all(isinstance(each, float | TimeoutError) for each in answers)
    return [isinstance(each, float) for each in answers]


@CLUSTERS
def test_each_node_has_a_host_with_the_port_of_its_protocol(protocol: str) -> None:
    with Simulation() as simulation:
        broker = getattr(simulation, protocol)(nodes=3)
        name = protocol.replace("_", "-")
        assert [node.host for node in broker.nodes] == [name, f"{name}-node2", f"{name}-node3"]
        assert {node.port for node in broker.nodes} == {broker.protocol.port}
        assert broker.host == name
        assert broker.urls["node3"] == f"{broker.scheme}://{name}-node3:{broker.port}"
        assert simulation.run(reached(broker)) == [True] * 3
        other = getattr(simulation, protocol)(nodes=2, host="oslo")
        assert [node.host for node in other.nodes] == ["oslo", "oslo-node2"]
        assert list(simulation.brokers) == [name, "oslo"]


def test_hosts_of_nodes_have_the_names_that_are_wanted() -> None:
    with Simulation() as simulation:
        broker = simulation.rabbitmq_stream(nodes=3, host=["oslo", "rome", "rome"])
        assert [node.name for node in broker.nodes] == ["rabbit@oslo", "rabbit@rome", "rabbit2@rome"]
        assert [node.port for node in broker.nodes] == [5552, 5552, 5553]
        with pytest.raises(UsageError, match=r"expected a host for each of 2 nodes, got \['bern'\]"):
            simulation.rabbitmq_stream(nodes=2, host=["bern"])
        with pytest.raises(UsageError, match="a broker on the host 'oslo' already"):
            simulation.blazingmq(nodes=2, host=["bern", "oslo"])


@CLUSTERS
def test_a_partition_is_of_one_node_or_of_all(protocol: str) -> None:
    async def test() -> list[list[bool]]:
        found = []
        simulation.partition("test", broker.nodes[1])
        found.append(await reached(broker))
        simulation.partition("test", broker)
        found.append(await reached(broker))
        simulation.heal(broker.nodes[2])
        found.append(await reached(broker))
        simulation.heal("test", broker)
        found.append(await reached(broker))
        return found

    with Simulation() as simulation:
        broker = getattr(simulation, protocol)(nodes=3)
        assert simulation.run(test()) == [
            [True, False, True],
            [False, False, False],
            [False, False, True],
            [True, True, True],
        ]


def test_a_latency_is_of_one_node_or_of_all() -> None:
    async def test() -> list[float]:
        return [await reaches(node.host, node.port) for node in broker.nodes]

    with Simulation() as simulation:
        broker = simulation.rabbitmq_stream(nodes=3)
        simulation.latency("test", broker.nodes[1], 0.25)
        assert simulation.run(test()) == [0, 0.5, 0]
        simulation.latency("test", broker, 1)
        assert simulation.run(test()) == [2, 2, 2]


def test_what_nothing_can_pass_or_is_no_place_is_refused() -> None:
    with Simulation() as simulation:
        broker = simulation.rabbitmq_stream(nodes=3)
        for one, other in ((broker.nodes[0], broker.nodes[1]), (broker, "rabbitmq-stream-node3")):
            for act in (simulation.partition, lambda a, b: simulation.latency(a, b, 1)):
                with pytest.raises(UsageError, match=r"the nodes of rabbitmq-stream share .*stop_node\(\)"):
                    act(one, other)
        with pytest.raises(UsageError, match="expected a broker, one of its nodes or an application"):
            simulation.latency("test", object(), 0.1)


def test_a_certificate_is_for_all_nodes() -> None:
    pytest.importorskip("trustme", reason="missing: trustme (pip install trustme)")

    async def test() -> list[int]:
        import ssl

        ports = []
        for node in broker.nodes:
            trusts = ssl.create_default_context(cafile=broker.tls.ca_file)
            _, writer = await asyncio.open_connection(node.host, node.tls_port, ssl=trusts)
            ports.append(node.tls_port)
            writer.close()
        return ports

    with Simulation() as simulation:
        broker: Any = simulation.rabbitmq_stream(nodes=2, tls=True)
        assert simulation.run(test()) == [5553, 5553]


def test_a_stock_client_finds_the_leader_by_its_name() -> None:
    rstream = pytest.importorskip("rstream", reason="missing: rstream (pip install rstream)")

    async def publish(host: str, port: int) -> None:
        async with rstream.Producer(host, port, username="guest", password="guest") as producer:
            await producer.send_wait("orders", b"tea", timeout=5)

    async def scenario(simulation: Simulation) -> list[Any]:
        broker: Any = simulation.rabbitmq_stream(nodes=3)
        broker.create_stream("orders")
        broker.move_leader("orders", 3)
        cut_off = simulation.start_on("cut-off", publish, broker.host, broker.port)
        simulation.partition(cut_off, broker.nodes[2])
        await simulation.start(publish, broker.host, broker.port).wait()
        with pytest.raises((OSError, TimeoutError)):
            await cut_off.wait()
        return [sorted(simulation.network.lines), [each.body for each in broker.messages("orders")]]

    lines = [
        ("cut-off", "rabbitmq-stream"),
        ("publish", "rabbitmq-stream"),
        ("publish", "rabbitmq-stream-node3"),
    ]
    assert check_repeats(scenario)[-1].what == repr([lines, [b"tea"]])
