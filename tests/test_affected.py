"""The tests that `ci/fast` chooses for a change, on small trees and on this one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.affected import LEFT_OUT, PROOFS, READ_BY, TOP, changed_files, find_users, main, reasons

#: A core, two protocols, and tests that mirror them.
TREE = {
    "fakebrokers/core/loop.py": "",
    "fakebrokers/pzq/__init__.py": "",
    "fakebrokers/pzq/codec.py": "import fakebrokers.core.loop\n",
    "fakebrokers/pzq/session.py": "def late():\n    from fakebrokers.pzq.codec import decode\n",
    "fakebrokers/narconi/codec.py": "from fakebrokers.core import loop\n",
    "fakebrokers/registry.py": 'KNOWN = ["fakebrokers.pzq.codec", "fakebrokers.narconi.codec"]\n',
    "conformance/kills.py": 'from . import pool\nPLACE = "kills.json"\n',
    "conformance/pool.py": "",
    "conformance/clients/mutants/pzq/queues.py": "",
    "tests/helper.py": "from fakebrokers.pzq import codec\n",
    "tests/core/test_loop.py": "",
    "tests/core/test_other.py": "",
    "tests/pzq/test_codec.py": "",
    "tests/pzq/test_codec_seed.py": "",
    "tests/pzq/test_walk.py": "",
    "tests/narconi/test_codec.py": "from fakebrokers.narconi.codec import decode\n",
    "tests/conformance/test_kills.py": "",
    "tests/conformance/test_matrix.py": "import conformance.kills\n",
    "tests/conformance/clients/mutants/test_mutants.py": "",
    "tests/test_registry.py": "import fakebrokers.registry\n",
    "tests/test_relay.py": "from fakebrokers.pzq.session import Session\n",
    "tests/test_helped.py": "from tests.helper import help_me\n",
    "tests/test_farther.py": "import tests.test_helped\n",
    PROOFS: "",
}


def chosen(*changed: str) -> dict[str, int]:
    """How far each test is from a change."""
    return {test: reason.steps for test, reason in reasons(changed, TREE).items()}


def test_nearest_first() -> None:
    found = chosen("fakebrokers/pzq/codec.py")
    assert list(found.items()) == [
        ("tests/pzq/test_codec.py", 1),
        ("tests/pzq/test_codec_seed.py", 1),
        ("tests/pzq/test_walk.py", 3),
        (PROOFS, 4),
        ("tests/test_helped.py", 4),
        ("tests/test_relay.py", 4),
        ("tests/test_farther.py", 5),
    ]


def test_a_name_in_a_registry_is_no_import() -> None:
    assert "tests/test_registry.py" not in chosen("fakebrokers/pzq/codec.py")
    assert "tests/narconi/test_codec.py" not in chosen("fakebrokers/pzq/codec.py")


def test_a_change_in_the_core_has_its_own_tests_before_those_of_protocols() -> None:
    found = chosen("fakebrokers/core/loop.py")
    assert (found["tests/core/test_loop.py"], found["tests/core/test_other.py"]) == (1, 3)
    assert found["tests/narconi/test_codec.py"] == 4
    assert found["tests/test_relay.py"] > 4
    assert PROOFS not in found


def test_a_changed_test_comes_first_and_the_shortest_way_counts() -> None:
    found = chosen("fakebrokers/pzq/session.py", "tests/test_relay.py", "tests/helper.py")
    assert found["tests/test_relay.py"] == 0
    assert found["tests/test_helped.py"] == 2


def test_a_file_that_is_gone_has_its_mirror() -> None:
    assert chosen("fakebrokers/pzq/gone.py", "tests/pzq/test_gone.py") == {
        "tests/pzq/test_codec.py": 3,
        "tests/pzq/test_codec_seed.py": 3,
        "tests/pzq/test_walk.py": 3,
        PROOFS: 4,
    }


def test_files_that_are_no_programs() -> None:
    assert chosen("conformance/kills.json")["tests/conformance/test_matrix.py"] == 3  # and imports the reader
    assert set(chosen("tests/pzq/vectors/hello.bin")) >= {"tests/pzq/test_walk.py"}
    assert chosen("LICENSE") == {}


def test_proofs_come_early_for_mutants() -> None:
    assert chosen("conformance/clients/mutants/pzq/queues.py") == {
        PROOFS: 2,
        "tests/conformance/clients/mutants/test_mutants.py": 3,
    }


def test_every_kind_of_import() -> None:
    users = find_users(TREE)
    assert users["conformance/pool.py"] == {"conformance/kills.py"}
    assert users["fakebrokers/pzq/codec.py"] == {"fakebrokers/pzq/session.py", "tests/helper.py"}
    assert users["fakebrokers/core/loop.py"] == {"fakebrokers/pzq/codec.py", "fakebrokers/narconi/codec.py"}


def test_what_is_named_by_hand_is_there(pytestconfig: pytest.Config) -> None:
    marks = {line.partition(":")[0] for line in pytestconfig.getini("markers")}
    assert marks >= set(LEFT_OUT)
    named = [PROOFS, *READ_BY, *(test for tests in READ_BY.values() for test in tests)]
    assert [each for each in named if not (TOP / each).exists()] == []


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=someone", "-c", "user.email=someone@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def test_changes_of_a_branch_committed_or_not(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    for name in ("kept", "edited", "removed"):
        (tmp_path / name).write_text(name)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    git(tmp_path, "checkout", "-qb", "topic")
    (tmp_path / "committed").write_text("")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "two")
    (tmp_path / "edited").write_text("otherwise")
    (tmp_path / "removed").unlink()
    (tmp_path / "new").write_text("")
    assert changed_files(["nowhere", "main"], tmp_path) == ["committed", "edited", "new", "removed"]
    assert changed_files(["HEAD"], tmp_path) == ["edited", "new", "removed"]
    with pytest.raises(SystemExit, match="nowhere"):
        changed_files(["nowhere"], tmp_path)


def test_nothing_has_changed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("tests.affected.changed_files", lambda revisions: [])
    monkeypatch.setattr(sys, "argv", ["affected"])
    main()
    assert "nothing has changed" in capsys.readouterr().out


@pytest.mark.parametrize(("folder", "expected"), [("pzq", 1), ("", 2)])
def test_proofs_of_other_protocols_stay_out(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, folder: str, expected: int
) -> None:
    monkeypatch.setenv("FAST_PROTOCOLS", folder)
    monkeypatch.setenv("PYTHONPATH", str(TOP))
    pytester.makepyfile("""
        import types
        import pytest

        SCENARIOS = [types.SimpleNamespace(protocol=each) for each in ("pzq", "narconi")]

        @pytest.mark.parametrize("item", SCENARIOS)
        def test_proof(item):
            pass

        def test_other():
            pass
    """)
    done = pytester.runpytest_subprocess("-p", "tests.fast_plugin")
    done.assert_outcomes(passed=expected + 1, deselected=2 - expected)


def test_no_test_begins_after_the_limit(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TOP))
    pytester.makepyfile("""
        from tests import fast_plugin

        def test_one():
            fast_plugin.LIMIT_S = -1

        def test_two():
            pass
    """)
    done = pytester.runpytest_subprocess("-p", "tests.fast_plugin", "-rs")
    done.assert_outcomes(passed=1, skipped=1)
    done.stdout.fnmatch_lines(["*left to ci/test: -1 s are over"])
