"""The examples in docs/pytest-conformance.md are true: they make tests, and their file can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.clients.reference.registry import reference
from conformance.known.defects import Part
from conformance.known.files import load
from conformance.rules import INVARIANTS
from conformance.suite.load import requirements
from tests.conformance.entry.toys import QUICK, ROOT

PAGE = (ROOT / "docs" / "pytest-conformance.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```\w+\n# ([\w.-]+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def test_each_example_makes_tests(pytester: pytest.Pytester) -> None:
    pytest.importorskip("rstream", reason="missing: rstream (pip install rstream)")
    adapter = f"from {reference.__module__} import reference\nAdapter = reference('rabbitmq-stream')\n"
    (pytester.path / "adapter.py").write_text(adapter)
    for name, text in FILES.items():
        (pytester.path / name).write_text(text)
    pytester.syspathinsert()
    result = pytester.runpytest(*QUICK, "--collect-only", "-q")
    assert result.ret == 0, result.outlines
    musts = {row.id for row in requirements().values() if row.level == "MUST" and row.family == "RMQS"}
    for file in ("test_conformance.py", "test_in_process.py"):
        made = {re.findall(r"\[(.*)\]", row)[0] for row in result.outlines if row.startswith(f"{file}::")}
        assert made >= musts
    publishing = [row for row in result.outlines if "::test_publishing[" in row]
    assert publishing and all("[RMQS-3." in row or "[NET-1.01]" in row for row in publishing)


def test_the_file_of_known_failures_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "known.toml").write_text(FILES["known-failures.toml"])
    failure, rule = load(tmp_path / "known.toml", Part.SUITE).rows
    assert failure.id in requirements() and rule.rule in INVARIANTS
