"""The pytest plugin, with the toy protocol behind all fixtures; the real ones use it in their own tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest

from fakebrokers import description as registry
from fakebrokers import pytest_plugin
from fakebrokers.description import fixture_names
from fakebrokers.protocol import Protocol, protocols
from tests.eventually import PATIENCE_S, QUIET_S
from tests.toy import Toy

LOAD = Protocol.load

#: pytester imports all plugins again for every run; these are slow to import, and not needed.
QUICK = ("-p", "no:allure_pytest", "-p", "no:hypothesispytest", "-p", "no:cacheprovider")

#: Processes of their own, such as xdist's workers, know nothing of the patch in `toys`.
IN_WORKERS = f"""
    import sys
    sys.path.insert(0, {str(Path(__file__).parents[1])!r})
    from tests.toy import Toy
    from fakebrokers.protocol import Protocol
    Protocol.load = lambda self: Toy
"""

CLIENT = """
    import asyncio, socket
    import pytest

    def talk(broker, *lines):
        "Say lines to the toy; return the last answer."
        answer = ""
        with socket.create_connection(("127.0.0.1", broker.port), timeout=5) as connection:
            with connection.makefile("rw") as file:
                for line in ["hello me", *lines]:
                    file.write(line + "\\n")
                    file.flush()
                    answer = file.readline().strip()
        return answer
"""


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every protocol is the toy here."""
    monkeypatch.setattr(Protocol, "load", lambda self: Toy)


@pytest.fixture
def run(pytester: pytest.Pytester):
    """Run tests in a project of their own."""

    def run(tests: str, *args: str, ini: str = "") -> pytest.RunResult:
        pytester.makeini(f"[pytest]\nfilterwarnings = error\n{ini}")
        pytester.makepyfile(CLIENT + tests)
        return pytester.runpytest(*QUICK, *args)

    return run


def passes(result: pytest.RunResult, count: int) -> None:
    result.assert_outcomes(passed=count)


# fixtures


@pytest.mark.parametrize("info", protocols(), ids=lambda info: info.fixture)
def test_each_protocol_has_a_fixture_and_a_factory(run, info: Protocol) -> None:
    tests = """
    def test_one(NAME):
        assert talk(NAME, "put a") == "stored a"

    def test_several(NAME_factory):
        one, other = NAME_factory(), NAME_factory(profile="seed")
        assert one.port != other.port
        assert (one.profile, other.profile) == ("real", "seed")
        assert talk(one, "put a 1", "get a") == "value a 1"
        assert talk(other, "get a") == "value a"
    """
    passes(run(tests.replace("NAME", info.fixture)), 2)


@pytest.mark.parametrize("name", ["nats", "redis", "mqtt"])
def test_a_fixture_hides_no_module_of_a_client(run, name: str) -> None:
    tests = """
    def test_one(NAME):
        pass
    """
    result = run(tests.replace("NAME", name))
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*fixture '{name}' not found", f"*available fixtures: *fake_{name}, *"])


WITH_TWO_NAMES = [each for each in protocols() if len(fixture_names(each.name)) == 2]


@pytest.mark.parametrize("info", WITH_TWO_NAMES, ids=lambda info: info.fixture)
def test_each_fixture_has_a_second_name_for_the_same_fake(run, info: Protocol) -> None:
    tests = """
    def test_one(NAME, fake_NAME):
        assert NAME is fake_NAME

    def test_several(fake_NAME_factory):
        assert fake_NAME_factory().port != fake_NAME_factory().port

    class TestShared:
        def test_shared(self, SCOPED):
            assert all(one is other for one, other in zip([SHARED], [FAKES], strict=True))

    def test_a_failure_shows_each_journal_once(fake_NAME, fake_NAME_session):
        assert False
    """
    shared = [f"NAME_{scope}" for scope in ("class", "module", "session")]
    fakes = [f"fake_{name}" for name in shared]
    tests = tests.replace("SCOPED", ", ".join([*shared, *fakes]))
    tests = tests.replace("SHARED", ", ".join(shared)).replace("FAKES", ", ".join(fakes))
    result = run(tests.replace("NAME", info.fixture))
    result.assert_outcomes(passed=3, failed=1)
    titles = [line.strip("- ") for line in result.outlines if line.startswith("---") and "journal" in line]
    assert titles == [f"fakebrokers journal: {name}" for name in (info.fixture, f"{info.fixture}_session")]


def test_one_broker_for_a_class_or_a_module(run) -> None:
    tests = """
    PORTS = []

    class TestOne:
        def test_first(self, pzq_class, pzq_module):
            PORTS.extend([pzq_class.port, pzq_module.port])
            talk(pzq_class, "put a 1")

        def test_second(self, pzq_class, pzq_module):
            assert PORTS == [pzq_class.port, pzq_module.port]
            assert talk(pzq_class, "get a") == "value a 1"

    class TestOther:
        def test_third(self, pzq_class, pzq_module):
            assert pzq_class.port != pzq_module.port == PORTS[1]
            assert talk(pzq_class, "get a") == "value a"
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", PORTS[0]))

        def test_unmet(self, pzq_class):
            pzq_class.expect(role="publish", count=2)

    def test_without_a_class(pzq_class):
        talk(pzq_class, "put a 1")
    """
    result = run(tests)
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["*expected 2 x publish, got none", "*- fakebrokers journal: pzq_class -*"])


def test_each_test_gets_a_fresh_broker_that_is_stopped_afterwards(run) -> None:
    tests = """
    ports = []

    @pytest.mark.parametrize("n", range(2))
    def test_fresh(rabbitmq_stream, n):
        ports.append(rabbitmq_stream.port)
        assert talk(rabbitmq_stream, "get a") == "value a"
        talk(rabbitmq_stream, "put a 1")

    def test_stopped():
        for port in ports:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port))
    """
    passes(run(tests), 3)


def test_a_fake_lives_no_longer_than_its_test(run) -> None:
    """Items live as long as the session; thousands of fakes with their journals would fill the memory."""
    result = run(
        """
    import gc, weakref

    KNOWN = []

    def test_it_is_used(rabbitmq_stream, pzq_factory):
        KNOWN.extend(weakref.ref(each) for each in (rabbitmq_stream, pzq_factory()))

    def test_it_is_gone():
        gc.collect()
        assert len(KNOWN) == 2 and not any(known() for known in KNOWN)
    """
    )
    passes(result, 2)


def test_async_code_needs_no_plugin(run) -> None:
    tests = """
    async def ask(broker):
        reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
        writer.write(b"hello me\\n")
        answer = await reader.readline()
        await broker.wait_for_async(kind="Hello")
        writer.close()
        await writer.wait_closed()
        return answer

    def test_async(rabbitmq_stream):
        assert asyncio.run(ask(rabbitmq_stream)) == b"welcome\\n"
    """
    passes(run(tests), 1)


def test_unittest_classes(run) -> None:
    tests = """
    import unittest

    class TestOrders(unittest.TestCase):
        @pytest.fixture(autouse=True)
        def broker(self, rabbitmq_stream):
            self.broker = rabbitmq_stream

        def test_put(self):
            self.assertEqual(talk(self.broker, "put a"), "stored a")
    """
    passes(run(tests), 1)


def test_parallel_workers(run) -> None:
    tests = """
    @pytest.mark.parametrize("n", range(8))
    def test_put(rabbitmq_stream_factory, n):
        for _ in range(3):
            assert talk(rabbitmq_stream_factory(), f"put {n}") == f"stored {n}"
    """
    passes(run(IN_WORKERS + tests, "-n", "2"), 8)


# errors and failure reports


def test_an_error_inside_the_fake_is_an_error_of_the_test(run) -> None:
    tests = """
    def test_boom(rabbitmq_stream):
        with pytest.raises(ConnectionResetError):
            talk(rabbitmq_stream, "put a boom")
    """
    result = run(tests)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["E *RuntimeError: boom", "* fakebrokers journal: rabbitmq_stream *", "* Put *"]
    )


def test_every_fake_is_stopped_even_if_one_has_an_error(run) -> None:
    tests = """
    ports = []

    def test_boom(rabbitmq_stream_factory):
        for _ in range(3):
            broker = rabbitmq_stream_factory()
            ports.append(broker.port)
            with pytest.raises(ConnectionResetError):
                talk(broker, "put a boom")

    def test_stopped():
        assert len(ports) == 3
        for port in ports:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port))
    """
    run(tests).assert_outcomes(passed=2, errors=1)


FAILING = """
    def test_two(rabbitmq_stream_factory, pzq):
        talk(rabbitmq_stream_factory(), "put first")
        talk(rabbitmq_stream_factory(), "put second")
        talk(pzq, "get third")
        assert False
"""


def test_a_failure_shows_the_journal_of_each_fake(run) -> None:
    result = run(FAILING)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines_random(
        [
            "*- fakebrokers journal: pzq -*",
            "*- fakebrokers journal: rabbitmq_stream -*",
            "*- fakebrokers journal: rabbitmq_stream (2) -*",
            "* c1 -> Put *key first*",
            "* c1 <- Stored *key first*",
            "* c1 -> Put *key second*",
            "* c1 -> Get *key third*",
        ]
    )


def test_the_journal_gets_through_from_a_worker(run) -> None:
    result = run(IN_WORKERS + FAILING, "-n", "1")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*- fakebrokers journal: rabbitmq_stream (2) -*", "* c1 -> Put *key second*"]
    )


def test_a_pass_shows_no_journal(run) -> None:
    result = run("    def test_put(pzq): talk(pzq, 'put a')\n", "-rA")
    passes(result, 1)
    result.stdout.no_fnmatch_line("*fakebrokers journal*")


@pytest.mark.parametrize("lines", [0, 2])
def test_the_length_of_the_journal(run, lines: int) -> None:
    tests = """
    def test_long(pzq):
        talk(pzq, *["put a"] * 20)
        pzq.kill()
        assert False
    """
    result = run(tests, f"--fakebrokers-journal-lines={lines}")
    shown = [line for line in result.outlines if " c1 -> " in line or " c1 <- " in line or " c1 -- " in line]
    assert len(shown) == lines
    assert any("fakebrokers journal" in line for line in result.outlines) == bool(lines)


# settings


def test_settings_of_the_command_line_beat_those_of_the_ini_file(run) -> None:
    tests = """
    def test_settings(pzq):
        assert (pzq.profile, pzq.engine.injector.seed) == ("seed", 7)
    """
    ini = "fakebrokers_seed = 3\nfakebrokers_profile = seed\n"
    result = run(tests, "--fakebrokers-seed=7", ini=ini)
    passes(result, 1)
    result.stdout.fnmatch_lines(["fakebrokers: *, profile seed, seed 7"])


def test_settings_when_nothing_is_said(run) -> None:
    tests = """
    def test_settings(pzq):
        assert (pzq.profile, pzq.engine.injector.seed) == ("real", 0)
    """
    result = run(tests)
    passes(result, 1)
    result.stdout.re_match_lines([r"fakebrokers: [\d.]+, profile real$"])


@pytest.mark.parametrize("option", ["seed", "journal-lines"])
def test_a_setting_that_is_no_number(run, option: str) -> None:
    result = run("    def test_nothing(): ...\n", f"--fakebrokers-{option}=many")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--fakebrokers-{option} or its ini twin: expected a number, got 'many'"])


# the marker


def test_the_closest_marker_wins_keyword_by_keyword(run) -> None:
    tests = """
    @pytest.mark.fakebrokers(profile="seed", seed=1)
    class TestMarked:
        def test_class(self, pzq):
            assert (pzq.profile, pzq.engine.injector.seed) == ("seed", 1)

        @pytest.mark.fakebrokers(seed=2)
        def test_method(self, pzq, pzq_factory):
            assert (pzq.profile, pzq.engine.injector.seed) == ("seed", 2)
            assert pzq_factory(seed=3).engine.injector.seed == 3

    @pytest.mark.fakebrokers("pzq", "narconi", seed=4)
    def test_for_some_protocols(pzq, narconi, rabbitmq_stream):
        assert [b.engine.injector.seed for b in (pzq, narconi, rabbitmq_stream)] == [4, 4, 9]
    """
    passes(run(tests, "--fakebrokers-seed=9"), 3)


def test_faults_as_a_list_a_plan_and_a_file_beside_the_test(run, pytester: pytest.Pytester) -> None:
    folder = pytester.mkdir("sub")
    (folder / "plan.toml").write_text(
        'seed = 5\n[[faults]]\nmatch = { kind = "Stored", nth = 2 }\neffect = { type = "drop" }\n'
    )
    tests = """
    from fakebrokers.faults import Plan, drop

    def check(broker):
        assert talk(broker, "put a", "get b") == "value b"
        broker.faults.add(drop(kind="Stored", nth=1))

    second = drop(kind="Stored", nth=2)

    @pytest.mark.parametrize("source", [
        pytest.param("list", marks=pytest.mark.fakebrokers(faults=[second])),
        pytest.param("plan", marks=pytest.mark.fakebrokers(faults=Plan(faults=(second,)))),
        pytest.param("file", marks=pytest.mark.fakebrokers(faults="plan.toml")),
    ])
    def test_second_confirm_is_lost(pzq, source):
        assert talk(pzq, "put a") == "stored a"
        assert pzq.faults.fired(pzq.faults.names[0]) == 0
        with pytest.raises(TimeoutError):
            talk_briefly(pzq)
        assert pzq.faults.fired(pzq.faults.names[0]) == 1

    def talk_briefly(broker):
        with socket.create_connection(("127.0.0.1", broker.port)) as connection:
            connection.sendall(b"hello me\\nput a\\nput b\\n")
            broker.wait_for(lambda record: record.fault)
            assert connection.recv(100) == b"welcome\\nstored a\\n"
            connection.settimeout(QUIET_S)
            connection.recv(100)
    """
    (folder / "test_faults.py").write_text(dedent(CLIENT + f"    QUIET_S = {QUIET_S}\n" + tests))
    passes(pytester.runpytest(*QUICK, "sub"), 3)


def test_a_marker_for_a_protocol_that_does_not_exist(run) -> None:
    tests = """
    @pytest.mark.fakebrokers("rabitmq", seed=1)
    def test_typo(pzq): ...
    """
    result = run(tests)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["E *UsageError: there is no protocol 'rabitmq'; did you mean 'rabbitmq-stream'*"]
    )


def test_the_marker_is_registered(run) -> None:
    tests = """
    @pytest.mark.fakebrokers(seed=1)
    def test_marked(pzq): ...
    """
    passes(run(tests, "--strict-markers"), 1)
    run("", "--markers").stdout.fnmatch_lines(["@pytest.mark.fakebrokers(*protocols, faults=None*"])


def test_a_protocol_that_this_version_lacks(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Protocol, "load", LOAD)
    monkeypatch.setitem(registry._REGISTERED, "narconi", "fakebrokers.gone.protocol")
    result = run("    def test_early(narconi): ...\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["E *UsageError: this version of fakebrokers cannot fake narconi; it can: *"])


# what it costs


@pytest.mark.full
def test_a_thousand_tests_grow_the_process_by_less_than_5_mb(pytester: pytest.Pytester) -> None:
    """Counted in bytes, and in a process of its own: this one keeps each call of a hook."""
    pytester.makeconftest(
        """
        import gc, tracemalloc

        ended, taken = [], []

        def pytest_runtest_logfinish():
            ended.append(None)
            if len(ended) in (10, 30):
                gc.collect()
                taken.append(tracemalloc.get_traced_memory()[0])

        def pytest_sessionstart(): tracemalloc.start()

        def pytest_sessionfinish(): print("GROWN", (taken[1] - taken[0]) // 20)
        """
    )
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("n", range(30))
        def test_it(rabbitmq_stream, fake_pzq, narconi_factory, n):
            rabbitmq_stream.create_stream("orders")
            rabbitmq_stream.publish("orders", [bytes(100_000)])
            narconi_factory(), narconi_factory()
        """
    )
    result = pytester.runpytest_subprocess(*QUICK, "-p", "no:xdist", "-s", "-q")
    passes(result, 30)
    (grown,) = [int(line.split()[-1]) for line in result.outlines if "GROWN" in line]
    assert grown < 5000


#: What pytest loads of this package in a project that does not use it: small modules, and nothing of others'.
LOADED_ANYWAY = {
    "fakebrokers",
    "fakebrokers.description",
    "fakebrokers.errors",
    "fakebrokers.pytest_fixtures",
    "fakebrokers.pytest_plugin",
    "fakebrokers.pytest_settings",
    "fakebrokers.version",
}


def test_a_project_that_does_not_use_it_loads_next_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "from hypothesis import given, strategies\n\n"
        "@given(strategies.none())\ndef test_passing(nothing): ...\n\n"
        "def test_failing(): assert False\n"
    )
    loaded = []
    for switch in ((), ("-p", "no:fakebrokers")):
        arguments = ["-q", f"--rootdir={tmp_path}", *QUICK, "-p", "no:xdist", *switch, str(tmp_path)]
        code = f"import pytest, sys; pytest.main({arguments!r}); print(*sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_S,
            cwd=tmp_path,
        )
        assert "1 failed, 1 passed" in done.stdout
        loaded.append(set(done.stdout.splitlines()[-1].split()))
    assert loaded[0] - loaded[1] == LOADED_ANYWAY


class Growing(dict[str, ModuleType]):
    """Modules, while another thread imports one."""

    def items(self) -> Any:
        for name in list(self):
            yield name, self[name]
        raise RuntimeError("dictionary changed size during iteration")


def test_a_report_is_made_while_a_thread_imports_something(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sys, "modules", Growing(sys.modules))
        pytest_plugin._hide_frames()
