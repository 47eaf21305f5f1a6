"""Applications, brokers and tests on one simulated network: outages, partitions, latencies, and a kill."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from fakebrokers.errors import Deadlock, NotSimulated, UnmetExpectation, UsageError
from fakebrokers.simulation import Simulation

#: More than both ends of a line hold, and the buffers of both programs.
MUCH = 4 * 1024 * 1024

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1000):
        writer.write(data)
    writer.close()


async def shop(port: int = 80, serve: Serve = echo) -> None:
    server = await asyncio.start_server(serve, port=port)
    await server.serve_forever()


async def ask(text: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(text)
    return await reader.readexactly(len(text))


#: Connections that nobody closes: the simulation does, at its end.
_open: list[asyncio.StreamWriter] = []


async def connect(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(host, port)
    _open.append(writer)
    return reader, writer


@pytest.fixture(autouse=True)
def connections() -> Iterator[None]:
    """Were all closed?"""
    _open.clear()
    yield
    assert all(each.is_closing() for each in _open)


def now() -> float:
    return asyncio.get_running_loop().time()


def test_hosts_have_names() -> None:
    async def test() -> bytes:
        await asyncio.sleep(1)
        return await ask(b"tea", *await connect("shop", 80))

    with Simulation() as simulation:
        simulation.start(shop)
        assert simulation.run(test()) == b"tea"


def test_a_name_that_nobody_has() -> None:
    with Simulation() as simulation, pytest.raises(socket.gaierror, match="Name or service not known"):
        simulation.run(connect("nobody", 80))


def test_localhost_is_the_own_host() -> None:
    async def alone() -> bytes:
        await asyncio.start_server(echo, "localhost", 80)
        answer = await ask(b"tea", *await connect("localhost", 80))
        await asyncio.sleep(60)
        return answer

    async def test() -> Any:
        await asyncio.sleep(1)
        with pytest.raises(ConnectionRefusedError, match="Connect call failed"):
            await connect("alone", 80)
        return await app.wait()

    with Simulation() as simulation:
        app = simulation.start(alone)
        assert simulation.run(test()) == b"tea"


def test_a_port_is_taken_once() -> None:
    async def test() -> None:
        await asyncio.start_server(echo, port=80)
        with pytest.raises(OSError, match="address in use"):
            await asyncio.start_server(echo, port=80)

    with Simulation() as simulation:
        simulation.run(test())


def test_latency() -> None:
    async def test() -> tuple[float, float]:
        await asyncio.sleep(1)
        connection = await connect("shop", 80)
        connected = now()
        await ask(b"tea", *connection)
        return connected - 1, now() - connected

    with Simulation() as simulation:
        app = simulation.start(shop)
        simulation.latency("test", app, 0.25)
        assert simulation.run(test()) == (0.5, 0.5)


def test_a_connect_makes_no_socket_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object, **options: object) -> None:
        raise AssertionError("a socket")

    async def test() -> None:
        monkeypatch.setattr(socket, "socket", none)
        line = await connect("shop", 80)
        await ask(b"tea", *line)
        monkeypatch.undo()
        with pytest.raises(ValueError, match="server_hostname"):
            await asyncio.open_connection("shop", 80, server_hostname="shop")

    with Simulation() as simulation:
        simulation.start(shop)
        simulation.run(test())


def test_a_question_and_its_answer_are_four_callbacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each end of the line reads, and then each task goes on: nobody is called for nothing in between."""
    called = []

    async def test() -> int:
        line = await connect("shop", 80)
        await ask(b"tea", *line)
        before = len(called)
        for _ in range(10):
            await ask(b"tea", *line)
        return len(called) - before

    with Simulation() as simulation:
        simulation.start(shop)
        really_call = simulation.loop.call

        def call(handle: asyncio.Handle) -> None:
            called.append(handle)
            really_call(handle)

        monkeypatch.setattr(simulation.loop, "call", call)
        assert simulation.run(test()) == 40


def test_who_waits_for_room_is_told_of_it() -> None:
    """With and without latency; more is sent than an end holds."""

    async def hoard(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)
        got = await reader.readexactly(MUCH)
        writer.write(b"%d" % len(got))
        writer.close()

    async def test() -> list[bytes]:
        said = []
        for seconds in (0.0, 0.5):
            simulation.latency("test", "shop", seconds)
            reader, writer = await connect("shop", 80)
            begun = now()
            writer.write(bytes(MUCH))
            await writer.drain()
            assert now() >= begun + 5
            said.append(await reader.read())
            writer.close()
        return said

    with Simulation() as simulation:
        simulation.start(shop, 80, hoard)
        assert simulation.run(test()) == [b"%d" % MUCH] * 2


def test_what_was_sent_before_a_line_became_fast_comes_first() -> None:
    async def test() -> bytes:
        reader, writer = await connect("shop", 80)
        simulation.latency("test", "shop", 3)
        writer.write(b"te")
        simulation.latency("test", "shop", 0)
        writer.write(b"a")
        return await reader.readexactly(3)

    with Simulation() as simulation:
        simulation.start(shop)
        assert simulation.run(test()) == b"tea"


def test_what_a_partition_keeps_back_arrives_when_it_is_over() -> None:
    async def test() -> tuple[bytes, float]:
        await asyncio.sleep(1)
        connection = await connect("shop", 80)
        simulation.partition("test", app)
        asyncio.get_running_loop().call_later(300, simulation.heal)
        return await ask(b"tea", *connection), now()

    with Simulation() as simulation:
        app = simulation.start(shop)
        assert simulation.run(test()) == (b"tea", 301)


def test_who_gets_no_acknowledgement_gives_up_after_a_quarter_of_an_hour() -> None:
    async def test() -> float:
        await asyncio.sleep(1)
        reader, writer = await connect("shop", 80)
        simulation.partition(app, "test")
        with pytest.raises(TimeoutError):
            await ask(b"tea", reader, writer)
        return now()

    with Simulation() as simulation:
        app = simulation.start(shop)
        assert simulation.run(test()) == pytest.approx(1 + 924.6)


def test_connects_through_a_partition_hang_and_are_tried_again() -> None:
    async def test() -> list[float]:
        simulation.partition(app, "test")
        with pytest.raises(TimeoutError):
            await connect("shop", 80)
        times = [now()]
        asyncio.get_running_loop().call_later(10, simulation.heal, app)
        await connect("shop", 80)
        return [*times, now()]

    with Simulation() as simulation:
        app = simulation.start(shop)
        assert simulation.run(test()) == [127, 127 + 15]


def test_a_killed_application_says_nothing_more_and_its_connections_end() -> None:
    said: list[str] = []

    async def beats(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                writer.write(b"beat\n")
                await asyncio.sleep(10)
        finally:
            said.append(f"last words, {'closed' if simulation.loop.is_closed() else 'early'}")

    async def test() -> tuple[list[bytes], float]:
        await asyncio.sleep(1)
        reader, _ = await connect("shop", 80)
        asyncio.get_running_loop().call_later(25, app.kill)
        lines = [line async for line in reader]
        assert (app.runs, app.was_killed) == (False, True)
        with pytest.raises(ConnectionRefusedError):
            await connect("shop", 80)
        assert await app.wait() is None
        await asyncio.sleep(100)
        return lines, now()

    with Simulation() as simulation:
        app = simulation.start(shop, serve=beats)
        assert simulation.run(test()) == ([b"beat\n"] * 3, 126)
    assert said == ["last words, closed"]


def test_an_application_starts_again_on_its_host() -> None:
    async def test() -> list[bytes]:
        answers = []
        for _ in range(3):
            await asyncio.sleep(1)
            answers.append(await ask(b"tea", *await connect("shop", 80)))
            app.restart()
        return answers

    with Simulation() as simulation:
        app = simulation.start(shop)
        assert simulation.run(test()) == [b"tea"] * 3
        assert len(app.processes) == 4


def test_what_an_application_returns_and_raises() -> None:
    async def adds(a: int, *, b: int) -> int:
        return a + b

    async def fails() -> None:
        raise ValueError("no tea")

    async def pause() -> None:
        await asyncio.sleep(1)

    with Simulation() as simulation:
        assert simulation.run(simulation.start(adds, 1, b=2).wait()) == 3
        with pytest.raises(ValueError, match="no tea"):
            simulation.run(simulation.start(fails).wait())
    with pytest.raises(ValueError, match="no tea"), Simulation() as simulation:
        simulation.start(fails)
        simulation.run(pause())
    with Simulation() as simulation, pytest.raises(UsageError, match="expected an async function"):
        simulation.start(dict)  # type: ignore[arg-type]


def test_applications_of_one_name_are_on_hosts_of_different_names() -> None:
    with Simulation() as simulation:
        assert [simulation.start(shop, 80).host.name for _ in range(3)] == ["shop", "shop-2", "shop-3"]
        one, other = (simulation.start_on("both", shop, port) for port in (1, 2))
        assert one.host is other.host
        with pytest.raises(UsageError, match=r"no host 'shap'.*shop"):
            simulation.partition("shap", "both")
        with pytest.raises(UsageError, match="cut off from itself"):
            simulation.partition(one, other)
        with pytest.raises(UsageError, match="cannot be called 'localhost'"):
            simulation.start_on("localhost", shop)


def test_a_refusal_that_a_library_has_caught_is_raised_at_the_end() -> None:
    async def careless() -> None:
        try:
            asyncio.get_running_loop().add_reader(0, print)
        except Exception:
            await asyncio.sleep(1)

    with pytest.raises(NotSimulated, match="a descriptor"), Simulation() as simulation:
        simulation.run(careless())


def test_a_refusal_that_led_to_something_else_is_added_to_that() -> None:
    async def waits() -> None:
        try:
            asyncio.get_running_loop().add_reader(0, print)
        except Exception:
            await asyncio.Event().wait()

    with pytest.raises(Deadlock) as caught, Simulation() as simulation:
        simulation.run(waits())
    assert "a descriptor" in caught.value.__notes__[0]


# brokers


@pytest.mark.parametrize("protocol", ["rabbitmq_stream", "blazingmq", "narconi", "moleculer"])
def test_each_protocol_has_a_method(protocol: str) -> None:
    async def test() -> None:
        reader, _ = await connect(broker.host, broker.port)
        await broker.wait_for_async(kind="accepted")
        broker.crash()
        assert await reader.read() == b""

    with Simulation() as simulation:
        broker = getattr(simulation, protocol)()
        assert broker.url.partition("://")[2] == f"{protocol.replace('_', '-')}:{broker.port}"
        with pytest.raises((ConnectionResetError, AssertionError)):
            simulation.run(test())
        assert broker.journal.select(kind="accepted")


def test_pzq_cannot_be_simulated() -> None:
    with Simulation() as simulation:
        with pytest.raises(UsageError, match="libzmq"):
            simulation.pzq()
        with pytest.raises(AttributeError, match="narconi"):
            simulation.narcony()


def test_two_brokers_of_a_protocol() -> None:
    with Simulation() as simulation:
        assert [simulation.narconi().host for _ in range(2)] == ["narconi", "narconi-2"]
        with pytest.raises(UsageError, match="a broker on the host 'narconi' already"):
            simulation.narconi(host="narconi")


def test_what_was_expected_of_a_broker_is_checked_at_the_end() -> None:
    with pytest.raises(UnmetExpectation), Simulation() as simulation:
        simulation.narconi().expect(role="publish")


def test_a_broker_outlives_the_application_that_made_it_do_something() -> None:
    async def makes_it_refuse() -> None:
        broker.refuse(for_s=60)
        await asyncio.sleep(3600)

    async def test() -> None:
        await asyncio.sleep(1)
        app.kill()
        with pytest.raises(ConnectionRefusedError):
            await connect(broker.host, broker.port)
        await asyncio.sleep(60)
        await connect(broker.host, broker.port)

    with Simulation() as simulation:
        broker = simulation.narconi()
        app = simulation.start(makes_it_refuse)
        simulation.run(test())


def test_connects_hang_in_a_black_hole() -> None:
    async def test() -> float:
        broker.black_hole(for_s=5)
        await connect(broker.host, broker.port)
        return now()

    with Simulation() as simulation:
        broker = simulation.narconi()
        assert simulation.run(test()) == 7  # attempts at 0, 1, 3 and 7 s


@pytest.mark.parametrize("way", ["black hole", "partition"])
def test_what_begins_while_a_connect_is_under_way_holds_it_up(way: str) -> None:
    async def test() -> float:
        loop = asyncio.get_running_loop()
        if way == "partition":
            loop.call_later(0.1, simulation.partition, "test", broker)
            loop.call_later(2, simulation.heal)
        else:
            loop.call_later(0.1, broker.black_hole, 2)
        await connect(broker.host, broker.port)
        return now()

    with Simulation() as simulation:
        broker = simulation.narconi()
        simulation.latency("test", broker, 0.25)
        assert simulation.run(test()) == 3.5  # lost at 0.25 s; sent again at 1 and 3 s


def test_whether_a_client_holds_its_connection() -> None:
    async def test() -> list[bool | None]:
        _, writer = await connect(broker.host, broker.port)
        (accepted,) = await broker.wait_for_async(kind="accepted")
        held = [broker.client_holds(accepted.connection)]
        writer.close()
        await asyncio.sleep(1)
        return [*held, broker.client_holds(accepted.connection)]

    with Simulation() as simulation:
        broker = simulation.narconi()
        assert simulation.run(test()) == [True, False]


def test_a_run_that_took_too_long_ends_all_the_same() -> None:
    ended = []

    async def beats() -> None:
        try:
            while True:
                await asyncio.sleep(30)
        finally:
            await asyncio.sleep(5)
            ended.append(now())

    with pytest.raises(Deadlock, match="7200 virtual seconds"), Simulation(longest_s=7200) as simulation:
        simulation.run(beats())
    assert ended == [7205]


def test_nothing_of_a_killed_application_goes_on() -> None:
    ticks: list[str] = []

    async def tick(what: str) -> None:
        while True:
            await asyncio.sleep(10)
            ticks.append(what)

    async def work() -> None:
        asyncio.get_running_loop().call_later(35, ticks.append, "a timer")
        child = asyncio.ensure_future(tick("a task"))
        await tick("the main task")
        await child

    async def test() -> float:
        await asyncio.sleep(25)
        app.kill()
        await asyncio.sleep(3600)
        return now()

    with Simulation() as simulation:
        app = simulation.start(work)
        assert simulation.run(test()) == 3625
        assert sorted(ticks) == ["a task"] * 2 + ["the main task"] * 2
    assert len(ticks) == 4


def test_what_was_about_to_run_when_an_application_was_killed_does_not() -> None:
    said: list[str] = []

    async def waits() -> None:
        asyncio.get_running_loop().call_at(30, said.append, "a timer")
        await opened
        said.append("woken")

    async def test() -> None:
        timer = asyncio.ensure_future(asyncio.sleep(30))  # due with that of the application
        await asyncio.sleep(1)
        opened.set_result(None)
        app.kill()
        await timer
        await asyncio.sleep(10)

    with Simulation() as simulation:
        opened = simulation.loop.create_future()
        app = simulation.start(waits)
        simulation.run(test())
    assert said == []
