"""The processes of the client: kept, replaced, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.entry.toys import ALL, CHILD, QUICK, ROOT, apart, is_running, line, starts, write
from tests.eventually import PATIENCE_S, eventually


def test_a_client_is_kept_until_it_fails(run, project: Path) -> None:
    """One for those that pass, the one that fails, a fresh one for the second opinion, and the next."""
    run(test=line(CHILD, "TOY-1.01", "TOY-1.02", "TOY-1.03", "TOY-1.10")).assert_outcomes(passed=3, failed=1)
    assert len(set(starts(project))) == 3
    assert not any(map(is_running, starts(project)))


def test_each_worker_keeps_a_client(project: Path) -> None:
    write(project, line(CHILD, *ALL))
    done = apart(project, "-n", "2", "-q")
    assert "4 passed, 2 skipped, 1 error" in done.stdout and "2 failed" in done.stdout, done.stdout
    assert not any(map(is_running, starts(project)))
    (project / "started").unlink()
    assert apart(project, "-n", "2", "-k", "1.01 or 1.02 or 1.06 or 1.07 or 1.10").returncode == 0
    assert len(starts(project)) == 2


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_ctrl_c_leaves_no_client(project: Path, workers: tuple[str, ...]) -> None:
    write(project, line(CHILD, "TOY-1.01", "TOY-1.09"))
    command = [sys.executable, "-m", "pytest", *QUICK[2:], *workers]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=project, env=env, stdout=subprocess.PIPE, start_new_session=True
    ) as child:
        eventually((project / "waiting").exists)
        pids = starts(project)
        assert any(map(is_running, pids))
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does: to every process of the job
        child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 2
    eventually(lambda: not any(map(is_running, pids)), "no client is left")


def test_a_client_that_cannot_start_is_an_error_and_is_not_tried_again(run, project: Path) -> None:
    (project / "dumb.py").write_text("open('tries', 'a').write('x')\n")
    result = run(test=line("'python dumb.py', protocol='pzq'", "TOY-1.01", "TOY-1.02"))
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*harness error: no hello from the adapter*"])
    assert (project / "tries").read_text() == "x"


def test_fixtures_of_the_project_are_there(run, pytester: pytest.Pytester) -> None:
    """Such as one that builds the adapter."""
    pytester.makeconftest(
        """
        import pytest, shutil

        @pytest.fixture(scope="session", autouse=True)
        def build():
            shutil.copy("adapter.py", "built.py")
        """
    )
    run(test=line("'python built.py', protocol='pzq'", "TOY-1.01")).assert_outcomes(passed=1)


def test_a_bundled_client_by_name(run) -> None:
    run(test="test_conformance = scenarios('reference-pzq', 'PZQ-1.01')").assert_outcomes(passed=1)
