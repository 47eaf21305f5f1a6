"""Tests with ``@given``: each example has fakes of its own, and the smallest that fails shows theirs."""

from __future__ import annotations

import pytest

from fakebrokers.protocol import Protocol
from tests.test_pytest_plugin import CLIENT
from tests.toy import Toy

PLUGINS = ("-p", "no:allure_pytest", "-p", "no:cacheprovider")

HEAD = """
    from hypothesis import HealthCheck, given, settings, strategies as st
    from tests.toy import Toy

    settings.register_profile("quick", database=None, deadline=None, derandomize=True, max_examples=20)
    settings.load_profile("quick")
    SEEN = []
"""


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every protocol is the toy here."""
    monkeypatch.setattr(Protocol, "load", lambda self: Toy)


@pytest.fixture
def run(pytester: pytest.Pytester):
    """Run tests in a project of their own."""

    def run(tests: str, *args: str) -> pytest.RunResult:
        pytester.makeini("[pytest]\nfilterwarnings = error\n")
        pytester.makepyfile(CLIENT + HEAD + tests)
        return pytester.runpytest(*PLUGINS, *args)

    return run


@pytest.mark.parametrize("name", ["pzq", "fake_pzq"])
def test_a_fixture_that_all_examples_would_share_points_to_the_factory(run, name: str) -> None:
    tests = """
    @given(number=st.integers())
    def test_it(NAME, number): ...
    """
    result = run(tests.replace("NAME", name))
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            f"E *UsageError: @given calls a test many times, and all examples would share the fake of {name}:"
            " name pzq_factory and call it in the test, which gives each example its own, or use"
            " `with PZQ() as broker:`"
        ]
    )


def test_who_means_to_share_a_fake_may(run) -> None:
    tests = """
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(number=st.integers())
    def test_suppressed(pzq, number): ...

    @given(number=st.integers())
    def test_longer(pzq_module, pzq_session, number): ...
    """
    run(tests).assert_outcomes(passed=2)


def test_a_factory_gives_each_example_a_fake_that_ends_with_it(run) -> None:
    tests = """
    @pytest.mark.parametrize("case", [1, 2])
    @pytest.mark.fakebrokers(seed=5)
    @given(number=st.integers())
    def test_it(pzq_factory, case, number):
        assert not any(fake.runs for fake in SEEN)
        broker = pzq_factory()
        assert (broker.runs, broker.engine.injector.seed) == (True, 5)
        SEEN.append(broker)

    def test_many(): assert len(SEEN) >= 4

    @given(number=st.integers())
    def test_unmet(pzq_factory, number):
        pzq_factory().expect(role="publish", count=1)
    """
    result = run(tests)
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*UnmetExpectation: *expected 1 x publish, got none*"])


def test_of_other_fixtures_hypothesis_still_warns(run) -> None:
    tests = """
    @given(number=st.integers())
    def test_it(pzq_factory, tmp_path, number): ...
    """
    result = run(tests)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*FailedHealthCheck*"])


@pytest.mark.parametrize("made", ["pzq_factory()", "Toy().start()"])
def test_the_smallest_example_that_fails_shows_its_journal(run, made: str) -> None:
    tests = """
    @given(number=st.integers(0, 1000))
    def test_it(pzq_factory, number):
        broker = MADE
        try:
            talk(broker, f"put n{number}")
            assert number < 17
        finally:
            broker.stop()
    """
    result = run(tests.replace("MADE", made))
    result.assert_outcomes(failed=1)
    title = "pzq" if "pzq" in made else "Toy"
    result.stdout.fnmatch_lines(
        [f"*fakebrokers journal: {title}", "*seed 0, profile real; again: pytest *", "* c1 -> Put *key n17 *"]
    )
    shown = [line for line in result.outlines if line.startswith("E ")]  # in CI the summary repeats it
    assert len([line for line in shown if " c1 -> Put " in line]) == 1
    result.stdout.no_fnmatch_line("*pytest_hypothesis.py*")
    result.stdout.fnmatch_lines(["*pzq_factory=pzq_factory*"])


def test_async_examples(run, pytester: pytest.Pytester) -> None:
    """As the plugins for async tests do it: they put a function that runs a loop in the place of the test."""
    tests = """
    @pytest.fixture(autouse=True)
    def loops(request):
        yield

    @given(number=st.integers(0, 1000))
    async def test_it(pzq_factory, number):
        await asyncio.to_thread(talk, pzq_factory(), f"put n{number}")
        assert number < 17
    """
    conftest = """
        import asyncio, functools, inspect, pytest

        @pytest.hookimpl(tryfirst=True)
        def pytest_pyfunc_call(pyfuncitem):
            inner = pyfuncitem.obj.hypothesis.inner_test
            assert inspect.iscoroutinefunction(inner)
            pyfuncitem.obj.hypothesis.inner_test = functools.wraps(inner)(
                lambda **values: asyncio.run(inner(**values))
            )
    """
    pytester.makeconftest(conftest)
    result = run(tests)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*fakebrokers journal: pzq", "* c1 -> Put *key n17 *"])
