"""The end of a test: what it expected, faults that never took place, and the report of a failure."""

from __future__ import annotations

import shlex

import pytest

from fakebrokers.protocol import Protocol
from tests.test_pytest_plugin import CLIENT, QUICK
from tests.toy import Toy


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every protocol is the toy here."""
    monkeypatch.setattr(Protocol, "load", lambda self: Toy)


@pytest.fixture
def run(pytester: pytest.Pytester):
    """Run tests in a project of their own."""

    def run(tests: str, *args: str, ini: str = "") -> pytest.RunResult:
        pytester.makeini(f"[pytest]\nfilterwarnings = error\n{ini}")
        pytester.makepyfile(CLIENT + "    from fakebrokers.faults import *\n" + tests)
        return pytester.runpytest(*QUICK, *args)

    return run


# expectations


EXPECTING = """
    def test_met(pzq):
        pzq.expect(role="publish", count=2)
        talk(pzq, "put a", "put b")

    def test_unmet(pzq):
        pzq.expect(role="publish", count=2)
        talk(pzq, "put a")

    def test_other(pzq):
        pzq.expect(role="publish", count=2)
        assert talk(pzq, "put a") == "no"

    def test_checked_by_the_test_itself(pzq):
        pzq.expect(role="publish", count=2)
        talk(pzq, "put a")
        pzq.check()
"""


def test_an_unmet_expectation_fails_the_test_and_not_its_teardown(run) -> None:
    result = run(EXPECTING)
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(
        [
            "*_ test_unmet _*",
            "test_an_unmet_*.py:*: expected 2 x publish, got 1",
            "* c1 -> Put *key a*",
            "*_ test_other _*",
            "E *AssertionError: assert 'stored a' == 'no'*",
            "unmet: test_an_unmet_*.py:*: expected 2 x publish, got 1",
            "*_ test_checked_by_the_test_itself _*",
            "E *UnmetExpectation: test_an_unmet_*.py:*: expected 2 x publish, got 1",
        ]
    )


def test_a_test_whose_fixture_fails_is_told_of_nothing_else(run) -> None:
    tests = """
    @pytest.fixture
    def broken(pzq):
        pzq.expect(role="publish", count=2)
        raise KeyError("broken")

    def test_it(broken): ...
    """
    result = run(tests)
    result.assert_outcomes(errors=1)
    result.stdout.no_fnmatch_line("*UnmetExpectation*")


def test_unittest_classes_too(run) -> None:
    tests = """
    import unittest

    class TestOrders(unittest.TestCase):
        @pytest.fixture(autouse=True)
        def broker(self, pzq):
            self.broker = pzq
            pzq.expect(role="publish", count=1)

        def test_put(self):
            talk(self.broker, "put a")

        def test_nothing(self): ...

        def test_wrong(self):
            self.assertEqual(1, 2)
    """
    result = run(tests)
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*expected 1 x publish, got none", "E *AssertionError: 1 != 2"])


def test_a_condition_that_raises_is_told(run) -> None:
    result = run("    def test_it(pzq): pzq.expect(lambda record: 1 / 0); talk(pzq)\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*its condition raised ZeroDivisionError*"])


# faults that never took place


UNFIRED = """
    def test_idle(pzq):
        pzq.faults.add(drop(role="confirm", nth=3, name="third"), drop(role="confirm", probability=0.0))
        talk(pzq, "put a")
"""


def test_a_fault_that_never_took_place_fails_a_test_only_on_demand(run) -> None:
    run(UNFIRED).assert_outcomes(passed=1)
    for result in (
        run(UNFIRED, "--fakebrokers-unfired=fail"),
        run(UNFIRED, ini="fakebrokers_unfired = fail"),
    ):
        result.assert_outcomes(failed=1)
        idle = "the fault 'third' never took place: 1 matched (role = \"confirm\", nth = 3)"
        result.stdout.fnmatch_lines([idle])
        result.stdout.no_fnmatch_line("the fault 'fault 2'*")
    run(UNFIRED, "--fakebrokers-unfired=report", ini="fakebrokers_unfired = fail").assert_outcomes(passed=1)


def test_a_fault_that_took_place_fails_nothing(run) -> None:
    tests = """
    def test_it(pzq):
        pzq.faults.add(duplicate(role="confirm"))
        talk(pzq, "put a")
    """
    run(tests, "--fakebrokers-unfired=fail").assert_outcomes(passed=1)


def test_a_wrong_word_for_it(run) -> None:
    result = run(UNFIRED, "--fakebrokers-unfired=yes")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--fakebrokers-unfired or *: expected report or fail, got 'yes'"])


# the report


FAILING = """
    @pytest.mark.parametrize("what", ["a b"])
    def test_failing(pzq, what):
        pzq.faults.add(duplicate(role="confirm", nth=1, name="twice"), drop(kind="Value", name="idle"))
        talk(pzq, *["put a"] * 20)
        pzq.wait_for(kind="closed")
        assert False
"""


def test_seed_faults_and_how_to_run_it_again(run, pytester: pytest.Pytester) -> None:
    result = run(
        FAILING, "--fakebrokers-seed=7", "--fakebrokers-journal-lines=5", "--fakebrokers-profile=real"
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*- fakebrokers journal: pzq -*",
            "seed 7, profile real; again: pytest '*.py::test_failing?a b?' --fakebrokers-seed=7"
            " --fakebrokers-profile=real",
            'fault twice: duplicate (role = "confirm", nth = 1); took place 1 x, 20 matched',
            'fault idle: drop (kind = "Value"); never took place, no frame matched',
            "... * earlier lines are left out",
            " * c1 -> Put *",
        ]
    )
    (left_out,) = [line for line in result.outlines if "left out" in line]
    whole = run(FAILING, "--fakebrokers-journal-lines=1000")
    lines = [line for line in whole.outlines if " c1 " in line]
    assert left_out == f"... {len(lines) - 5} earlier lines are left out"
    whole.stdout.no_fnmatch_line("*left out*")
    (command,) = [line.partition("again: ")[2] for line in whole.outlines if "again: " in line]
    again = pytester.runpytest(*QUICK, *shlex.split(command)[1:])
    again.assert_outcomes(failed=1)


def test_a_failure_without_an_exception_has_its_journal_too(run) -> None:
    tests = """
    @pytest.mark.xfail(strict=True)
    def test_it(pzq):
        talk(pzq, "put a")
    """
    result = run(tests)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*- fakebrokers journal: pzq -*", "* c1 -> Put *key a*"])


def test_what_the_journal_had_no_room_for_counts_as_left_out(run) -> None:
    tests = """
    @pytest.mark.fakebrokers(journal_limit=10)
    def test_long(pzq):
        talk(pzq, *["put a"] * 20)
        pzq.wait_for(kind="closed")
        assert False
    """
    result = run(tests, "--fakebrokers-journal-lines=5")
    result.stdout.fnmatch_lines(["... 39 earlier lines are left out"])  # of 1 + 2 + 40 + 1


def test_the_journal_of_a_server_that_belongs_to_a_fake_is_shown_too(
    run, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Toy()
    monkeypatch.setattr(Toy, "_companions", property(lambda self: {} if self is other else {"proxy": other}))
    result = run("    def test_it(pzq): assert False\n")
    result.stdout.fnmatch_lines(["*- fakebrokers journal: pzq -*", "*- fakebrokers journal: pzq.proxy -*"])


def test_frames_of_this_package_are_left_out_of_what_it_raises_on_purpose(run) -> None:
    tests = """
    def test_wait(pzq): pzq.wait_for(role="confirm", timeout=0.01)
    def test_word(pzq): drop(rol="confirm")
    def test_add(pzq): pzq.faults.add(drop(kind="Nothing"))
    def test_kill(pzq): pzq.kill("c9")
    def test_twice(pzq): pzq.start()
    def test_check(pzq): pzq.faults.add(drop(kind="Value")), pzq.faults.check()
    """
    result = run(tests)
    result.assert_outcomes(failed=6)
    places = [line for line in result.outlines if ".py:" in line and not line.startswith("FAILED")]
    inside = [line for line in places if "fakebrokers/" in line or "concurrent" in line]
    assert inside == []
    assert len(places) >= 6


def test_errors_inside_the_fake_keep_their_frames(run) -> None:
    tests = """
    def test_boom(pzq):
        with pytest.raises(ConnectionResetError):
            talk(pzq, "put a boom")
        pzq.check()
    """
    result = run(tests)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*toy.py:*: RuntimeError"])


# fakes that are no fixture's


OWN = """
    from tests.toy import Toy

    @pytest.fixture(scope="session")
    def long(): yield from kept()

    def kept():
        with Toy() as toy:
            yield toy

    def test_before(long):
        talk(long, "put before")

    def test_quiet(long):
        with Toy():
            pass

    def test_failing(long, pzq):
        talk(pzq, "put fixture")
        with Toy(seed=7) as first:
            talk(first, "put first")
        with Toy() as second:
            talk(second, "put second")
            assert False

    def test_other(long):
        talk(long, "put long")
        assert False
"""


def test_every_fake_that_lived_in_a_failed_test_shows_its_journal(run) -> None:
    result = run(OWN)
    result.assert_outcomes(passed=2, failed=2)
    lines = result.outlines
    shown = [line.strip("- ") for line in lines if line.startswith("---") and "journal" in line]
    assert shown == [f"fakebrokers journal: {title}" for title in ("pzq", "Toy", "Toy (2)", "Toy")]
    put = [
        line.split(" key ")[1].split()[0] for line in lines if " c1 -> Put " in line or " c2 -> Put " in line
    ]
    assert put == ["fixture", "first", "second", "before", "long"]
    result.stdout.fnmatch_lines(["seed 7, profile real; again: *--fakebrokers-seed=7"])


def test_of_many_fakes_the_last_ones_show_their_journals(run) -> None:
    tests = """
    from tests.toy import Toy

    def test_failing():
        fakes = [Toy() for _ in range(9)]
        for n, fake in enumerate(fakes):
            with fake:
                talk(fake, f"put order{n}")
        assert not fakes
    """
    result = run(tests)
    put = [line.split(" key ")[1].split()[0] for line in result.outlines if " c1 -> Put " in line]
    assert put == [f"order{n}" for n in range(4, 9)]


# projects that have nothing to do with it


def test_the_plugin_is_no_frame_of_what_others_leak(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    pytester.makepyfile("import socket\n\ndef test_leaks():\n    socket.socket()\n")
    result = pytester.runpytest(*QUICK)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*ResourceWarning: unclosed <socket*"])
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")
