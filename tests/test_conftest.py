"""On CI a test that skips because something is missing fails; elsewhere it does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fakebrokers import RabbitMQStream
from fakebrokers.rabbitmq_stream.access import User
from tests.marked import PASSWORD

CONFTEST = Path(__file__).with_name("conftest.py").read_text()

#: pytester imports all plugins again for every run; these are slow to import, and not needed.
QUICK = ("-p", "no:allure_pytest", "-p", "no:hypothesispytest")

TESTS = """
    import pytest

    @pytest.mark.skip(reason="missing: node (apt-get install nodejs)")
    def test_marked(): ...

    def test_called():
        pytest.skip("missing: node (apt-get install nodejs)")

    def test_for_another_reason():
        pytest.skip("this platform has no fork")

    def test_that_runs(): ...
"""

MODULE = """
    import pytest
    pytest.importorskip("nowhere_to_be_found", reason="missing: nowhere (pip install nowhere)")
"""


@pytest.mark.parametrize(
    ("ci", "outcomes"), [("", {"skipped": 3}), ("true", {"failed": 1, "errors": 1, "skipped": 1})]
)
def test_skipped_tests(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, ci: str, outcomes: dict[str, int]
) -> None:
    monkeypatch.setenv("CI", ci)
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS)
    result = pytester.runpytest(*QUICK)
    result.assert_outcomes(passed=1, **outcomes)
    if ci:
        result.stdout.fnmatch_lines(["*skipped although CI is set; missing: node (apt-get install nodejs)"])


@pytest.mark.parametrize(("ci", "outcomes"), [("", {"skipped": 1}), ("true", {"errors": 1})])
def test_skipped_modules(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, ci: str, outcomes: dict[str, int]
) -> None:
    monkeypatch.setenv("CI", ci)
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(MODULE)
    pytester.runpytest(*QUICK).assert_outcomes(**outcomes)


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_file_with_the_password_of_the_tests_fails_the_run(
    pytester: pytest.Pytester, workers: str, tmp_path: Path
) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(
        """
        import base64, pytest
        from pathlib import Path
        from tests.marked import LOOKED_AT, PASSWORD

        def test_leaves_it(tmp_path):
            (tmp_path / "log").write_text(f"user bob, password {PASSWORD}")
            (tmp_path / "long").write_bytes(bytes(3 * LOOKED_AT) + base64.b64encode(PASSWORD.encode()))
            (tmp_path / "fine").write_text("password ***")

        def test_leaves_nothing(tmp_path):
            (tmp_path / "gone").symlink_to("nowhere")
        """
    )
    base = tmp_path / "base"
    try:
        result = pytester.runpytest(*QUICK, "-n", workers, f"--basetemp={base}")
    finally:
        shutil.rmtree(base, ignore_errors=True)  # or this run would fail, too
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    shown = [line for line in result.outlines if "the password of the tests is kept in" in line]
    assert sorted(Path(line.rpartition(" in ")[2]).name for line in shown) == ["log", "long"]


def test_a_fake_that_knows_the_password_looks_through_its_journal() -> None:
    broker = RabbitMQStream()
    broker.broker.access.add_user(User("bob", PASSWORD))
    broker.start()
    broker.call(broker.journal.state, 0.0, "", "noted", f"bob:{PASSWORD}")
    with pytest.raises(AssertionError, match="the password of the tests is in the journal"):
        broker.stop()
