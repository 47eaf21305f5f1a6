"""A failure's file fails as the run did, without the suite, and does not fail for a correct client."""

from __future__ import annotations

import ast
import asyncio
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapters.registry import find
from conformance.clients.mutants.registry import find_mutant
from conformance.results import Verdict, reproducer_name
from conformance.suite.brokers import fake_for
from conformance.suite.deeds import Deeds
from conformance.suite.judge import Judgement, judge
from conformance.suite.load import all_scenarios
from conformance.suite.reproducer import PythonClient, python_client, reproducer
from conformance.suite.scenario import Scenario
from conformance.suite.story import one_line, reported
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop
from fakebrokers.rabbitmq_stream.frames import PublishError

ROOT = Path(__file__).parents[3]
#: The reference clients are the libraries of their files, so these are left where they are.
LIBRARY = frozenset(
    {"conformance.clients.mutants", "conformance.clients.reference", "conformance.clients.adapter.kit"}
)

MUTANTS = [
    ("pzq", "PZQ-1.07", "exactly-three-parts"),
    ("pzq", "NET-1.05", "half-messages-count"),
    ("narconi", "NARC-1.04", "post-is-text"),
    ("narconi", "NARC-3.02", "metadata-of-the-last"),
    ("rabbitmq-stream", "RMQS-3.02", "confirm-by-position"),
    ("rabbitmq-stream", "RMQS-4.14", "offset-stored-at-the-end"),
]
MORE_MUTANTS = [
    ("pzq", "PZQ-1.25", "any-answer-is-good"),
    ("pzq", "PZQ-2.02", "body-at-index-5"),
    ("pzq", "PZQ-2.05", "acknowledges-on-arrival"),
    ("pzq", "PZQ-2.14", "short-deliveries-count"),
    ("pzq", "PZQ-2.19", "body-at-index-5"),
    ("narconi", "NARC-1.13", "cut-body-is-whole"),
    ("narconi", "NARC-2.02", "missing-protocol-is-a-defect"),
    ("narconi", "NARC-2.08", "confirms-on-write"),
    ("narconi", "NARC-3.03", "encoding-not-sent"),
    ("narconi", "NARC-3.14", "errors-are-messages"),
    ("narconi", "NET-4.04", "bodies-are-text"),
    ("rabbitmq-stream", "RMQS-3.20", "bodies-end-at-64k"),
]
LIBRARIES = [
    ("rstream", "RMQS-1.04"),
    ("rstream", "RMQS-2.13"),
    ("rstream", "RMQS-3.05"),
    ("rstream", "RMQS-4.19"),
    ("rstream", "RMQS-4.33"),
    ("rstream", "RMQS-4.25"),
    ("rstream", "NET-4.02"),
    ("rbfly", "NET-2.08"),
    ("rbfly", "NET-3.03"),
]


def the_scenario(protocol: str, scenario_id: str) -> Scenario:
    return next(one for one in all_scenarios() if (one.protocol, one.id) == (protocol, scenario_id))


def judged(item: Scenario, adapter: Adapter) -> Judgement:
    async def run() -> Judgement:
        await adapter.start()
        try:
            return await judge(item, adapter, fake_for())
        finally:
            await adapter.shutdown()

    return asyncio.run(run())


def reference(protocol: str) -> PythonClient:
    return PythonClient(
        imports="from conformance.clients.reference.registry import reference",
        make=f"reference({protocol!r})()",
        kept=LIBRARY,
    )


def mutant(protocol: str, name: str) -> PythonClient:
    return PythonClient(
        imports="from conformance.clients.mutants.registry import find_mutant",
        make=f"find_mutant({protocol!r}, {name!r}).adapter()",
        kept=LIBRARY,
    )


def pytest_says(folder: Path, *, path: Path = ROOT, **environment: str) -> str:
    """What pytest prints for all files in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-p", "no:xdist", "."],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(path), "COLUMNS": "400", **environment},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    return done.stdout + done.stderr


def write(folder: Path, judgement: Judgement, client: PythonClient | None, prefix: str = "") -> str:
    text = reproducer(judgement, client)
    name = reproducer_name(judgement.scenario).replace("test_", f"test_{prefix}", 1)
    (folder / name).write_text(text, encoding="utf-8")
    return text


def imported(text: str) -> set[str]:
    """The top-level packages that a file imports, without those of Python."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return {name.partition(".")[0] for name in found} - sys.stdlib_module_names


@pytest.mark.parametrize(
    ("protocol", "scenario_id", "name"),
    [*MUTANTS, *(pytest.param(*row, marks=pytest.mark.full) for row in MORE_MUTANTS)],
)
def test_a_mutants_file_fails_as_told_and_a_correct_client_passes_it(
    tmp_path: Path, protocol: str, scenario_id: str, name: str
) -> None:
    failed = judged(
        the_scenario(protocol, scenario_id), InProcessAdapter(find_mutant(protocol, name).adapter, protocol)
    )
    assert failed.verdict is Verdict.FAIL
    write(tmp_path, failed, mutant(protocol, name))
    write(tmp_path, failed, reference(protocol), "good_")
    said = pytest_says(tmp_path)
    assert f"Failed: {failed.criterion}" in said
    assert "1 failed, 1 passed" in said


@pytest.mark.full
@pytest.mark.parametrize(("name", "scenario_id"), LIBRARIES)
def test_a_librarys_file_needs_nothing_of_the_suite(tmp_path: Path, name: str, scenario_id: str) -> None:
    client = find(name)
    if not client.runnable:
        pytest.skip(f"missing: {'; '.join(client.missing)}")
    adapter = ProcessAdapter(client.command, "rabbitmq-stream", env=client.env)
    failed = judged(the_scenario("rabbitmq-stream", scenario_id), adapter)
    assert failed.verdict is Verdict.FAIL

    text = write(tmp_path, failed, python_client(name))
    assert imported(text) <= {"fakebrokers", "msgspec", "pytest", name}
    for package in ("conformance", "scenarios"):
        stub = tmp_path / "without" / package
        stub.mkdir(parents=True)
        (stub / "__init__.py").write_text("raise ImportError('this is the suite')\n")
    (tmp_path / "without" / "fakebrokers").symlink_to(ROOT / "fakebrokers")
    said = pytest_says(tmp_path, path=tmp_path / "without")
    assert f"Failed: {failed.criterion}" in said
    assert "1 failed" in said

    good = tmp_path / "good"
    good.mkdir()
    write(good, failed, reference("rabbitmq-stream"))
    assert "1 passed" in pytest_says(good)


@pytest.mark.full
def test_a_client_with_an_adapter_of_its_own_gets_a_file_that_runs_it(tmp_path: Path) -> None:
    """For every failure, whatever the script did to the fake."""
    words = "-m", "conformance.clients.mutants", "rabbitmq-stream", "confirm-by-position"
    failed = judged(
        the_scenario("rabbitmq-stream", "RMQS-3.02"),
        InProcessAdapter(find_mutant("rabbitmq-stream", "confirm-by-position").adapter, "rabbitmq-stream"),
    )
    who = "--adapter", shlex.join([sys.executable, *words])
    text = reproducer(failed, who=who, seed=7, folder=ROOT)
    assert imported(text) == {"fakebrokers"} and "inside the fake" not in text
    name = reproducer_name(failed.scenario)
    (tmp_path / name).write_text(text, encoding="utf-8")
    said = pytest_says(tmp_path)
    assert f"Failed: {failed.criterion}" in said
    assert "1 failed" in said
    (tmp_path / name).write_text(
        text.replace("conformance.clients.mutants", "conformance.clients.reference").replace(
            f" {words[3]}", ""
        )
    )
    assert "1 passed" in pytest_says(tmp_path)


def test_the_file_of_an_adapter_names_what_it_ran() -> None:
    item = next(one for one in all_scenarios() if (one.id, one.variant) == ("MOL-1.01", "mqtt"))
    text = reproducer(Judgement(item, Verdict.FAIL, reason="why"), who=("--client", "moleculer-0.15"), seed=3)
    code = text[text.index("from fakebrokers") :]
    assert code == (
        "from fakebrokers.suite import scenarios\n\ntest_mol_1_01_mqtt = scenarios(\n    'moleculer-0.15',\n"
        "    'MOL-1.01',\n    protocol='moleculer',\n    variant='mqtt',\n    seed=3,\n)\n"
    )
    assert reproducer(Judgement(item, Verdict.FAIL)) == ""  # an adapter class is in no file


def recorded(server: Any, act: Callable[[Any], None]) -> tuple[Any, ...]:
    clock = iter(range(1000))
    deeds = Deeds(server, lambda: float(next(clock)))
    with server:
        act(server)
    return tuple(deeds.done)


def test_what_the_fake_does_of_itself_is_no_deed() -> None:
    def act(broker: RabbitMQStream) -> None:
        broker.create_stream("orders")
        assert broker.messages("orders") == []
        broker.crash()
        broker.restart()
        broker.faults.add(drop(role="confirm", name="idle"))
        broker.faults.near_miss("idle")  # the judge asks that of a fault that never took place

    deeds = recorded(RabbitMQStream(), act)
    assert [deed.text.partition("(")[0] for deed in deeds] == [
        "broker.create_stream",
        "broker.crash",
        "broker.restart",
        "broker.faults.load",
    ]


def test_a_deed_that_cannot_be_written_is_not_told() -> None:
    deeds = recorded(RabbitMQStream(), lambda broker: broker.call(lambda: None))
    assert [deed.text for deed in deeds] == [""]
    assert reported(deeds) == []


def test_megabytes_are_not_written_down_and_a_long_deed_is_told_briefly() -> None:
    def write(broker: RabbitMQStream) -> None:
        broker.create_stream("s")
        broker.publish("s", [bytes(1 << 20)])
        broker.publish("s", [bytes(1000)])

    _, megabytes, long = recorded(RabbitMQStream(), write)
    assert megabytes.text == ""
    assert len(long.text) > 4000
    assert len(one_line(long)) == 400


HOSTILE = "\x00\x1b]0;owned\x07\u202e\ud800'''\"\"\"\\\n\r\u2028 import os; #{0} {x} \N{SNOWMAN}"


@pytest.mark.parametrize("client", [None, "rstream"])
def test_the_file_compiles_whatever_a_client_says(client: str | None) -> None:
    entries = [
        {"at_ns": 1, "way": "out", "line": {"id": 1, "op": "publish", "args": {"target": HOSTILE}}},
        {
            "at_ns": 2,
            "way": "in",
            "line": {"id": 1, "ok": False, "error": {"kind": HOSTILE, "text": HOSTILE}},
        },
        {"at_ns": 3, "way": "out", "line": {"id": 2, "op": "publish", "args": {"target": ""}}},
        {"at_ns": 4, "way": "in", "line": {"id": 2, "ok": False, "error": HOSTILE}},
        {"at_ns": 5, "way": "in", "line": HOSTILE},
    ]
    encoded = HOSTILE.replace("\ud800", "")  # JSON of the transcript never holds a lone surrogate

    def sane(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: sane(inner) for key, inner in value.items()}
        return encoded if value == HOSTILE else value

    failed = Judgement(
        the_scenario("rabbitmq-stream", "RMQS-3.05"),
        Verdict.FAIL,
        criterion=HOSTILE,
        actual=HOSTILE,
        reason=HOSTILE,
        transcript=tuple(msgspec.json.encode(sane(entry)) for entry in entries),
        deeds=recorded(RabbitMQStream(), lambda broker: broker.create_stream(encoded)),
    )
    text = reproducer(failed, python_client(client) if client else None, who=("--adapter", encoded))
    assert all(character.isprintable() or character == "\n" for character in text)
    compile(text, "reproducer", "exec")
    names: dict[str, Any] = {"__name__": "reproduced"}
    if client is None:
        with pytest.raises(ValueError, match="No closing quotation"):
            exec(text, names)  # the command is a value, and nothing is run
        assert text.isascii()


def test_a_frame_by_hand_is_written_with_what_it_needs() -> None:
    def act(broker: RabbitMQStream) -> None:
        broker.say("c1", PublishError(0, ((7, 17),)))

    with pytest.raises(Exception, match="c1"):
        recorded(RabbitMQStream(), act)
    server = RabbitMQStream()
    deeds = Deeds(server, lambda: 0.0)
    with server, pytest.raises(Exception, match="c1"):
        server.say("c1", PublishError(0, ((7, 17),)))
    assert deeds.done[0].text == "broker.say('c1', PublishError(publisher_id=0, errors=((7, 17),)))"
