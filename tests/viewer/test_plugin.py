"""``--fakebrokers-trace=on-failure``: a page for each failed test."""

from __future__ import annotations

import pytest

from tests.pages_of_runs import documents

TESTS = """
import logging
import socket

def test_well(pzq):
    pass

def test_bad(rabbitmq_stream, fake_redis):
    with socket.create_connection((rabbitmq_stream.host, rabbitmq_stream.port)):
        rabbitmq_stream.wait_for(kind="accepted")
    logging.getLogger("shop").warning("sold %s to http://me:s3cret@host/", "tea")
    logging.getLogger("shop").debug("of no interest")
    print("printed by the test")
    assert not "as it should be"

def test_without_a_fake():
    assert False
"""


def test_a_failed_test_has_a_page(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_shop=TESTS)
    result = pytester.runpytest(
        "--fakebrokers-trace=on-failure", "-p", "no:cacheprovider", "--junitxml=junit.xml"
    )
    result.assert_outcomes(passed=1, failed=2)
    [page] = (pytester.path / "fakebrokers-traces").iterdir()
    assert page.name.startswith("test_shop.py-test_bad")
    result.stdout.fnmatch_lines([f"*fakebrokers-traces/{page.name}*"])
    assert f'value="fakebrokers-traces/{page.name}"' in (pytester.path / "junit.xml").read_text()
    titles = {each.title: each for each in documents(page)}
    assert set(titles) == {"test_bad: rabbitmq_stream", "test_bad: fake_redis"}
    assert "accepted" in [row.name for row in titles["test_bad: rabbitmq_stream"].rows]
    calls = [row for row in titles["test_bad: rabbitmq_stream"].rows if row.name == "wait_for"]
    assert [row.what for row in calls] == ["op", "end"] and calls[0].text == "kind='accepted'"
    assert [row.what for row in titles["test_bad: fake_redis"].rows] == ["log", "failure"]
    [line] = [row for row in titles["test_bad: rabbitmq_stream"].rows if row.what == "log"]
    assert (line.name, line.text) == ("shop WARNING", "sold tea to http://me:***@host/")
    ended = next(row.t for row in titles["test_bad: rabbitmq_stream"].rows if row.what == "end")
    assert ended <= line.t
    assert ("Captured stdout call", "printed by the test\n") in titles["test_bad: fake_redis"].logs
    about = dict(titles["test_bad: fake_redis"].about)
    assert about["test"] == "test_shop.py::test_bad"
    assert "as it should be" in about["failed"]
    assert about["again"].startswith("pytest test_shop.py::test_bad --fakebrokers-seed=")


def test_nothing_is_written_unless_asked(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_shop=TESTS)
    pytester.runpytest("-p", "no:cacheprovider")
    assert not (pytester.path / "fakebrokers-traces").exists()


def test_the_folder_and_a_wrong_word(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_shop=TESTS)
    pytester.makeini("[pytest]\nfakebrokers_trace = on-failure\nfakebrokers_trace_dir = pages")
    pytester.runpytest("-p", "no:cacheprovider")
    assert len(list((pytester.path / "pages").iterdir())) == 1
    result = pytester.runpytest("--fakebrokers-trace=sometimes")
    result.stderr.fnmatch_lines(["*expected*off*on-failure*sometimes*"])


def test_a_folder_that_cannot_be_written_fails_nothing_else(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_shop=TESTS)
    (pytester.path / "file").write_text("")
    result = pytester.runpytest(
        "--fakebrokers-trace=on-failure", "--fakebrokers-trace-dir=file/x", "-p", "no:cacheprovider"
    )
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*cannot be written*"])


def test_allure_gets_the_page(pytester: pytest.Pytester) -> None:
    pytest.importorskip("allure_pytest", reason="missing: allure-pytest (pip install allure-pytest)")
    pytester.makepyfile(test_shop=TESTS)
    pytester.runpytest_subprocess(
        "--fakebrokers-trace=on-failure", "--alluredir=out", "-p", "no:cacheprovider"
    )
    [page] = (pytester.path / "out").glob("*.html")
    [written] = (pytester.path / "fakebrokers-traces").iterdir()
    assert page.read_text() == written.read_text()
