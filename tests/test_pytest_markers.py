"""Markers and factories with wrong words, the fake of the session, and real brokers in the place of fakes."""

from __future__ import annotations

import pytest

from fakebrokers.protocol import Protocol
from fakebrokers.pytest_marks import keywords
from tests.test_pytest_plugin import CLIENT, QUICK
from tests.toy import Toy


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every protocol is the toy here."""
    monkeypatch.setattr(Protocol, "load", lambda self: Toy)


@pytest.fixture
def run(pytester: pytest.Pytester):
    """Run tests in a project of their own."""

    def run(tests: str, *args: str) -> pytest.RunResult:
        pytester.makeini("[pytest]\nfilterwarnings = error\n")
        pytester.makepyfile(CLIENT + "    from fakebrokers.faults import *\n" + tests)
        return pytester.runpytest(*QUICK, *args)

    return run


# words


@pytest.mark.parametrize(
    ("marker", "sentence"),
    [
        ("fault=[]", "marker fakebrokers: PZQ has no 'fault'; did you mean 'faults'? It has: host, *"),
        ("nodes=3", "*PZQ has no 'nodes'; if it is for another fake of this test, name that *"),
        ("'pzq', nodes=3", "*PZQ has no 'nodes'. It has: *"),
        ("drop()", "marker fakebrokers: expected names of protocols by position and *; got drop()*"),
        ("faults=drop()", "marker fakebrokers: expected a list of faults, *such as faults=?it?; got drop()*"),
        ("faults=3", "marker fakebrokers: expected a list of faults, a plan or a plan's path, *got 3"),
        ("'pqz'", "there is no protocol 'pqz'; did you mean 'pzq'? Choose from: *"),
        ("faults=[{'effect': {'type': 'dorp'}}]", "*did you mean 'drop'*"),
        ("faults='none.toml'", "*none.toml: cannot be read: No such file or directory"),
    ],
)
def test_a_marker_used_wrongly_is_refused_with_a_sentence(run, marker: str, sentence: str) -> None:
    result = run(f"    @pytest.mark.fakebrokers({marker})\n    def test_it(pzq): ...\n")
    result.assert_outcomes(errors=1)
    (told,) = [line for line in result.outlines if line.startswith("E  ")]
    assert not [line for line in result.outlines if "fakebrokers/" in line and ".py:" in line]
    pytest.LineMatcher([told.removeprefix("E").strip().partition("Error: ")[2]]).fnmatch_lines([sentence])


def test_a_wrong_word_in_another_marker_of_a_protocol_that_is_not_meant_is_refused_too(run) -> None:
    tests = """
    @pytest.mark.fakebrokers("narconi", nodes=3)
    def test_it(pzq): ...

    @pytest.mark.fakebrokers("narcnoi", seed=3)
    def test_typo(pzq): ...
    """
    run(tests).assert_outcomes(passed=0, errors=2)


# markers without effect


@pytest.mark.parametrize(
    ("test", "sentence"),
    [
        ("def test_it(): ...", "this test has no fake; name a fixture such as rabbitmq_stream"),
        (
            "def test_it(pzq_session): ...",
            "the fake of pzq_session is made for a whole session; name the fixture pzq or pzq_factory",
        ),
        (
            "def test_it(fake_pzq_module): ...",
            "the fake of fake_pzq_module is made for a whole module; name the fixture pzq or pzq_factory,"
            " or put the marker on the module",
        ),
    ],
)
def test_a_marker_that_nothing_uses_is_an_error(run, test: str, sentence: str) -> None:
    result = run(f"    @pytest.mark.fakebrokers(nodes=3)\n    {test}\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"E *UsageError: marker fakebrokers(nodes=3) has no effect: {sentence}"])


def test_a_marker_for_another_protocol_is_an_error(run) -> None:
    tests = """
    @pytest.mark.fakebrokers("narconi", seed=3)
    def test_it(pzq, blazingmq_factory): ...
    """
    result = run(tests)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "E *marker fakebrokers('narconi', seed=3) has no effect: this test has blazingmq_factory, pzq;"
            " name the fixture narconi, or mark another protocol"
        ]
    )


def test_markers_that_reach_a_fake_on_other_ways_have_an_effect(run) -> None:
    tests = """
    @pytest.fixture
    def broker(request):
        return request.getfixturevalue("fake_pzq")

    @pytest.mark.fakebrokers(seed=3)
    @pytest.mark.parametrize("name", ["pzq"])
    def test_by_name(name, broker):
        assert broker.engine.injector.seed == 3

    @pytest.mark.fakebrokers("pzq", "narconi", seed=4)
    def test_one_of_two(fake_narconi):
        assert fake_narconi.engine.injector.seed == 4

    @pytest.mark.fakebrokers(seed=5)
    class TestSome:
        def test_with(self, pzq):
            assert pzq.engine.injector.seed == 5

        def test_without(self): ...
    """
    run(tests).assert_outcomes(passed=4)
    run(tests, "-k", "test_without").assert_outcomes(passed=1, deselected=3)


def test_a_marker_of_a_class_that_none_of_its_tests_uses(run, pytester: pytest.Pytester) -> None:
    tests = """
    @pytest.mark.fakebrokers(seed=5)
    class TestNone:
        def test_without(self): ...
        def test_session(self, pzq_session): ...
    """
    run(tests).assert_outcomes(errors=2)
    one = pytester.runpytest(
        *QUICK, "test_a_marker_of_a_class_that_none_of_its_tests_uses.py::TestNone::test_without"
    )
    one.assert_outcomes(passed=1)  # of the others nobody knows


def test_markers_of_a_class_and_a_module_make_their_fakes(run) -> None:
    tests = """
    pytestmark = pytest.mark.fakebrokers(seed=5)

    def test_module(pzq_module):
        assert pzq_module.engine.injector.seed == 5

    @pytest.mark.fakebrokers("pzq", seed=6, faults=[drop(kind="Stored", name="lost")])
    class TestIt:
        def test_class(self, pzq_class, pzq_module):
            assert (pzq_class.engine.injector.seed, pzq_module.engine.injector.seed) == (6, 5)
            assert pzq_class.faults.names == ("lost",)
    """
    run(tests).assert_outcomes(passed=2)


def test_a_factory_with_a_wrong_word(run) -> None:
    result = run("    def test_it(pzq_factory): pzq_factory(sed=3)\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *UsageError: pzq: PZQ has no 'sed'; did you mean 'seed'?*"])


def test_keywords_of_a_class_and_of_its_bases() -> None:
    class Wider(Toy):
        def __init__(self, *, width: int = 1, **options: object) -> None:
            super().__init__(**options)  # type: ignore[arg-type]

    class Wide:
        server_name = "Wider"

        def load(self) -> type[Wider]:
            return Wider

    found = keywords(Wide())  # type: ignore[arg-type]
    assert found[0] == "width"
    assert {"host", "port", "faults", "seed", "memory"} <= set(found)


# the fake of the session


SESSION = """
    ports = set()

    @pytest.fixture
    def fresh(pzq_session):
        pzq_session.reset()
        return pzq_session

    @pytest.mark.parametrize("n", range(2))
    def test_fresh(fresh, n):
        ports.add(fresh.port)
        assert len(ports) == 1
        assert talk(fresh, "get a") == "value a"
        talk(fresh, "put a 1")

    def test_failing(fresh):
        fresh.expect(role="publish")
        talk(fresh, "get third")
        assert False

    def test_unmet(fresh):
        fresh.expect(role="publish")

    def test_boom(fresh):
        with pytest.raises(ConnectionResetError):
            talk(fresh, "put a boom")

    def test_without():
        assert False
"""


def test_one_fake_for_the_whole_session(run) -> None:
    result = run(SESSION)
    result.assert_outcomes(passed=2, failed=4)
    result.stdout.fnmatch_lines(
        [
            "*_ test_failing _*",
            "*- fakebrokers journal: pzq_session -*",
            "unmet: *",
            "* -> Get *key third*",
            "*_ test_unmet _*",
            "*expected at least 1 x publish, got none",
            "*_ test_boom _*",
            "E *RuntimeError: boom",
            "*_ test_without _*",
        ]
    )
    assert sum("fakebrokers journal" in line for line in result.outlines) == 3


def test_it_is_stopped_at_the_end(run, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = []
    monkeypatch.setattr(Toy, "_closed", lambda self: stopped.append(self.port))
    run("    def test_one(pzq_session): ...\n    def test_two(pzq_session): ...\n").assert_outcomes(passed=2)
    assert len(stopped) == 1


# real brokers


REAL = """
    def test_address(pzq):
        assert (pzq.url, pzq.host, pzq.port) == ("tcp://broker.example:9000", "broker.example", 9000)
        assert (pzq.where, pzq.scheme, pzq.urls) == ("broker.example:9000", "tcp", {})
        assert pzq.protocol.name == "pzq"

    @pytest.mark.fakebrokers(seed=3, profile="seed")
    def test_incidental(pzq): assert pzq.port == 9000

    def test_other_protocol(narconi): talk(narconi, "put a")

    def test_session(pzq_session): assert pzq_session.port == 9000

    def test_typo(pzq):
        with pytest.raises(AttributeError, match="neither a real broker nor a fake has 'prot'"):
            pzq.prot

    def test_faults(pzq): pzq.faults.add(drop())
    def test_journal(pzq): pzq.wait_for(role="confirm")
    def test_two(pzq_factory): pzq_factory(), pzq_factory()

    @pytest.mark.fakebrokers(faults=[drop()])
    def test_marked(pzq): ...

    @pytest.mark.fakebrokers("pzq", memory=True)
    def test_option(pzq): ...
"""


def test_real_brokers_in_the_place_of_fakes(run) -> None:
    result = run(REAL, "--fakebrokers-url=pzq=tcp://broker.example:9000", "-rs")
    result.assert_outcomes(passed=5, skipped=5)
    result.stdout.re_match_lines([r"fakebrokers: .*, real pzq at tcp://broker\.example:9000$"])
    for needs in ("'faults'", "'wait_for'", "a second one", "the faults", "memory=True"):
        result.stdout.fnmatch_lines_random([f"SKIPPED *: needs {needs} of a fake, and tcp://*"])


def test_a_scheme_that_is_a_protocol_needs_no_name(run) -> None:
    tests = "    def test_it(rabbitmq_stream): assert rabbitmq_stream.port == 5552\n"
    run(tests, "--fakebrokers-url=rabbitmq-stream://h:5552").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("tcp://h:1", "there is no protocol 'tcp'*"),
        ("pzq", "expected PROTOCOL=URL, such as *, got 'pzq'"),
        ("pzq=h", "expected PROTOCOL=URL*"),
        ("pzq=tcp://h:x", "expected PROTOCOL=URL*"),
        ("pqz=tcp://h:1", "there is no protocol 'pqz'; did you mean 'pzq'*"),
    ],
)
def test_a_url_that_says_too_little(run, url: str, problem: str) -> None:
    result = run("", f"--fakebrokers-url={url}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --fakebrokers-url: {problem}"])
