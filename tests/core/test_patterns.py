"""Regular expressions of others: what they match, and that none of them holds anybody up."""

from __future__ import annotations

import re
import time

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.core import patterns
from fakebrokers.core.patterns import MOST_PARTS, PURSE_S, QUICK_S, SEARCH_S, Pattern, Purse, problem_of

SLOW = "a" * 250 + "!"


@pytest.mark.parametrize(
    ("pattern", "name", "found"),
    [
        ("", "orders", True),
        ("^$", "orders", False),
        ("rd", "orders", True),
        ("^orders-[0-9]{1,3}$", "orders-12", True),
        ("(?i)^ORDERS", "orders", True),
        (r"^(?!amq\.).*", "amq.x", False),
        ("^(a|b)?(c|d)*[[:alpha:]]+$", "acdx", True),
        ("[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", "x-00000000-0000-0000-0000-000000000000", True),
    ],
)
def test_what_a_pattern_fits(pattern: str, name: str, found: bool) -> None:
    assert Pattern(pattern).found_in(name) is found


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", r"(\w+\s?)*$", "(a|(?R))+$", r"(a+)+\1$"])
def test_a_pattern_that_takes_too_long_matches_nothing_and_the_log_says_so_once(
    pattern: str, caplog: pytest.LogCaptureFixture
) -> None:
    slow = Pattern(pattern)
    begun = time.process_time()
    assert not any(slow.found_in(SLOW) for _ in range(1000))
    assert time.process_time() - begun < 0.1
    (record,) = caplog.records
    assert repr(pattern) in record.getMessage() and "takes too long" in record.getMessage()


def test_slow_searches_together_take_no_longer_than_the_purse_has(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = []

    class Slow:
        """Takes all the time that it is given."""

        def search(self, string: str, *, timeout: float) -> object:
            allowed.append(timeout)
            now[0] += timeout
            raise TimeoutError

    now = [0.0]
    monkeypatch.setattr(patterns, "_compile", lambda text: Slow())
    monkeypatch.setattr(patterns.time, "thread_time", lambda: now[0])
    clock = [0.0]
    purse = Purse(lambda: clock[0])
    for _ in range(100):
        Pattern("x", purse).found_in("x")
    assert allowed[0] == SEARCH_S
    assert allowed[-1] == QUICK_S
    assert sum(allowed) <= PURSE_S + 100 * QUICK_S
    clock[0] = 1000.0  # much later there is as much as in the beginning, and no more
    allowed.clear()
    for _ in range(100):
        Pattern("x", purse).found_in("x")
    assert PURSE_S * 0.9 < sum(allowed) <= PURSE_S + 100 * QUICK_S


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "got '(': missing"),
        ("[", "unterminated"),
        ("(" * 2000, "maximum recursion depth"),
        ("a" * 2001, "at most 2000 characters, got 2001"),
        ("(?:" * 20 + "a|b" + ")+|c" * 20, f"at most {MOST_PARTS}"),
        ("(((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+)+)+", f"at most {MOST_PARTS}"),
        ("(?:(?:(a)|b){1000}){1000}", f"at most {MOST_PARTS}"),
        ("(?fi)[ß-\uffff]", "unknown flags 'f'"),
        ("(?x)a", "unknown flags 'x'"),
        ("(?V1i:a)", "unknown flags 'V'"),
    ],
)
def test_what_is_refused(pattern: str, problem: str) -> None:
    begun = time.process_time()
    assert problem in (problem_of(pattern) or "nothing")
    assert time.process_time() - begun < 0.1
    with pytest.raises(ValueError, match=re.escape(problem)):
        Pattern(pattern)


@given(st.text(alphabet="()[]^\\:a|?{2}*#-", max_size=24))
def test_groups_are_seen_where_they_are(text: str) -> None:
    """What is counted before compiling is what the compiler will see."""
    try:
        groups = regex.compile(text).groups
    except regex.error:
        return
    seen = [token for token in patterns._TOKEN.finditer(text) if token["open"]]
    assert sum(1 for token in seen if text[token.end() : token.end() + 1] != "?") == groups
