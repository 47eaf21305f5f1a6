"""The fixture: async tests run inside of a simulation."""

from __future__ import annotations

import pytest

ASYNC = """
import asyncio
import pytest

async def client(broker, seen):
    reader, writer = await asyncio.open_connection(broker.host, broker.port)
    seen.append(await reader.read())
    writer.close()

@pytest.fixture
def minutes():
    return 10

async def test_an_outage(simulation, minutes):
    broker, seen = simulation.narconi(), []
    app = simulation.start(client, broker, seen)
    await asyncio.sleep(60 * minutes)
    broker.kill()
    await app.wait()
    assert (seen, simulation.now) == ([b""], 600)

@pytest.mark.parametrize("n", [1, 2])
async def test_parameters(simulation, n):
    assert n in (1, 2)
"""


def test_async_tests_run_in_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ASYNC)
    pytester.runpytest().assert_outcomes(passed=3)


def test_other_tests_get_it_too(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import asyncio, pytest

        async def wait():
            await asyncio.sleep(3600)
            return 1

        @pytest.mark.simulation(seed=7, shuffle=True, patch=True, longest_s=7200)
        def test_by_hand(simulation):
            assert simulation.run(wait()) == 1
            assert simulation.seed == 7

        def test_seed(simulation):
            assert simulation.seed == 5
        """
    )
    pytester.runpytest("--fakebrokers-seed=5", "--strict-markers").assert_outcomes(passed=2)


def test_a_failure_shows_the_journals_and_no_frame_of_the_plugin(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import asyncio

        async def test_fails(simulation):
            broker = simulation.narconi()
            broker.expect(role="publish")
            _, writer = await asyncio.open_connection(broker.host, broker.port)
            writer.close()
            await asyncio.sleep(1)
            assert 1 == 2
        """
    )
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*assert 1 == 2", "*fakebrokers journal: narconi*", "*accepted*"])
    result.stdout.no_fnmatch_line("*fixture.py*")
    result.stdout.no_fnmatch_line("*simulation.py*")


@pytest.mark.parametrize("fixed", ["5", None])
def test_a_failure_says_how_the_same_run_is_had_again(
    fixed: str | None, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes with one ``PYTHONHASHSEED`` have the same order of sets of strings, others have not."""
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    if fixed is not None:
        monkeypatch.setenv("PYTHONHASHSEED", fixed)
    pytester.makepyfile(
        test_order="""
        import asyncio

        async def test_walks_a_set(simulation):
            simulation.narconi()
            await asyncio.sleep(60)
            print("walks", "".join(set("abcdefgh")))
            assert 1 == 2
        """
    )
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    options = "-p", "fakebrokers.pytest_plugin", "--fakebrokers-seed=7"
    runs = [pytester.runpytest_subprocess(*options) for _ in range(2)]
    walks = {line for run in runs for line in run.outlines if line.startswith("walks")}
    again = "pytest test_order.py::test_walks_a_set --fakebrokers-seed=7"
    said = runs[0].stdout
    if fixed is None:
        assert len(walks) > 1
        said.fnmatch_lines([f"seed 7, ended at 60 s; again: {again}", "*another process draws another*"])
    else:
        assert len(walks) == 1
        said.fnmatch_lines([f"seed 7, *again: PYTHONHASHSEED=5 {again}"] * 2)  # of the journal, too
        said.no_fnmatch_line("*draws another*")


def test_what_fails_in_an_application_fails_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import asyncio

        async def fails():
            raise ValueError("no tea")

        async def test_careless(simulation):
            simulation.start(fails)
            await asyncio.sleep(1)
        """
    )
    result = pytester.runpytest()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*ValueError: no tea"])


def test_other_async_tests_are_left_to_their_plugins(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def simulation():
            return "of my own"

        def test_own(simulation):
            assert simulation == "of my own"
        """
    )
    pytester.runpytest().assert_outcomes(passed=1)
