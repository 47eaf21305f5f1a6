"""The keywords of the server classes: known to type checkers, wrong ones named with the right ones."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fakebrokers import PZQ, BlazingMQ, Moleculer, Narconi, RabbitMQStream
from fakebrokers.errors import PlanError, UsageError
from fakebrokers.faults import drop
from fakebrokers.narconi.config import Config
from fakebrokers.options import ServerOptions, keywords_of
from fakebrokers.proxy import Proxy
from fakebrokers.server import FakeServer

ALL = (RabbitMQStream, BlazingMQ, PZQ, Narconi, Moleculer)
WRONG: list[tuple[str, Any, str]] = [
    ("prot", 1, r"has no 'prot'; did you mean 'port'\? Choose from: "),
    ("fautls", [], r"has no 'fautls'; did you mean 'faults'\?"),
    ("port", 70000, r"\(port=\.\.\.\): expected a whole number from 0 to 65535, got 70000"),
    ("port", "abc", r"\(port=\.\.\.\): expected a whole number from 0 to 65535, got 'abc'"),
    ("port", -1, "from 0 to 65535, got -1"),
    ("seed", "x", r"\(seed=\.\.\.\): expected a whole number, got 'x'"),
    ("seed", 1.5, "expected a whole number, got 1.5"),
    ("journal_limit", -1, "expected a whole number from 0, got -1"),
    ("exact", "yes", "expected true or false, got 'yes'"),
    ("host", None, "expected text, got None"),
    ("profile", "reall", "no profile 'reall'; did you mean 'real'"),
    ("profile", 4, "expected text, got 4"),
]


@pytest.mark.parametrize("server", ALL)
@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_a_wrong_keyword(server: type[FakeServer], name: str, value: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        server(**{name: value})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RabbitMQStream(heartbeat_s=-1), r"RabbitMQStream\(heartbeat_s=\.\.\.\): expected .* got -1"),
        (lambda: RabbitMQStream(tls="expird"), r"did you mean 'expired'"),
        (lambda: Narconi(tls="expird"), r"did you mean 'expired'"),
        (
            lambda: PZQ(order="strikt"),
            r"expected one of strict, skip; got 'strikt' \(did you mean 'strict'\?\)",
        ),
        (lambda: PZQ(send_port=70000), "from 0 to 65535"),
        (lambda: Moleculer(udp_port=70000), "from 0 to 65535"),
        (lambda: Moleculer(transporter="nat"), "did you mean 'nats'"),
        (lambda: BlazingMQ(nodes="3"), "expected a whole number"),
        (lambda: PZQ(high_water_marks=5), r"PZQ\(high_water_marks=\.\.\.\): expected a list"),
        (lambda: Narconi(config={"crash": 1}), r"config\.crash: .*did you mean 'crash_s'"),
        (lambda: Narconi(config={"crash_s": "x"}), r"config\.crash_s: expected a number, got 'x'"),
        (lambda: Moleculer(bus={"max_payloat": 1}), r"bus\.max_payloat: .*did you mean 'max_payload'"),
        (lambda: RabbitMQStream(switches={"filterz": 1}), r"no switch 'filterz'; did you mean 'filters'"),
        (lambda: BlazingMQ(switches={"checks_crx": 1}), r"no switch 'checks_crx'; did you mean 'checks_crc'"),
        (lambda: Proxy("127.0.0.1:1", prot=1), "Proxy has no 'prot'; did you mean 'port'"),
    ],
)
def test_a_wrong_keyword_of_its_own(make: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()


def test_settings_as_a_table() -> None:
    assert Narconi(config={"crash_s": 2}).config == Config(crash_s=2.0)
    assert Moleculer(bus={"max_payload": 1000}).bus_options.max_payload == 1000


def test_words_of_methods() -> None:
    with RabbitMQStream() as broker, PZQ() as pzq:
        for use, message in (
            (lambda: broker.kill(how="rts"), r"a connection cannot end with 'rts'; did you mean 'rst'"),
            (lambda: broker.crash("rts"), r"cannot end with 'rts'; did you mean 'rst'"),
            (lambda: broker.stop_node("rabbit2"), r"expected a node from 1 to 1, got 'rabbit2'"),
            (lambda: broker.wait_for(role="publihs"), r"got 'publihs'; did you mean 'publish'"),
            (lambda: broker.wait_for(kind="Pubish"), r"got 'Pubish'; did you mean 'Publish'"),
            (lambda: pzq.connect_memory_socket("sned", "x", print), r"no socket 'sned'; did you mean 'send'"),
        ):
            with pytest.raises(UsageError, match=message):
                use()  # type: ignore[no-untyped-call]
        assert broker.port  # it did not crash


def test_numbers_of_numpy_are_numbers() -> None:
    assert RabbitMQStream(seed=np.int64(7), port=np.uint16(0)).faults.plan.seed == 7


def test_faults_as_a_list_of_faults_and_tables() -> None:
    table = {"match": {"role": "confirm"}, "effect": {"type": "drop"}}
    own = {"match": {"role": "publish", "nth": 3}, "effect": {"type": "move-leader", "stream": "o"}}
    broker = RabbitMQStream(faults=[drop(role="confirm"), table, own], seed=3)
    assert broker.faults.plan.faults[0] == broker.faults.plan.faults[1] == drop(role="confirm")
    with pytest.raises(PlanError, match=r"faults: expected a plan, a list of faults, .* got .*drop"):
        RabbitMQStream(faults=drop(role="confirm"))
    with pytest.raises(PlanError, match=r"faults\[0\]: expected a table, got 3"):
        RabbitMQStream(faults=[3])


def test_the_typed_dictionary_has_what_the_base_takes() -> None:
    own = inspect.signature(FakeServer.__init__).parameters
    assert set(ServerOptions.__annotations__) == set(own) - {"self", "profile"}
    for name, kind in ServerOptions.__annotations__.items():
        assert own[name].annotation == kind.__forward_arg__


@pytest.mark.parametrize("server", (*ALL, Proxy))
def test_all_types_are_known_at_run_time(server: type[FakeServer]) -> None:
    assert all(kind is not None for kind in keywords_of(server).values())


@pytest.mark.full
def test_mypy_names_a_wrong_keyword(tmp_path: Path) -> None:
    lines = [f"{kind.__name__}(prot=1)" for kind in ALL] + ["RabbitMQStream(seed='x')", "PZQ(port=0, seed=1)"]
    names = ", ".join(kind.__name__ for kind in ALL)
    (tmp_path / "wrong.py").write_text(f"from fakebrokers import {names}\n" + "\n".join(lines) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "wrong.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [line.partition(": error: ")[0] for line in found] == [f"wrong.py:{n}" for n in range(2, 8)]
    assert all('"prot"' in line for line in found[:5])
