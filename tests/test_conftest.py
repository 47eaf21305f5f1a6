"""On CI a test that skips because something is missing fails; elsewhere it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

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
