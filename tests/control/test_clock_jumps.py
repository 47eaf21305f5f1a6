"""The wall clock jumps by years: brokers and their control API go on, and wait as long as they are told."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fakebrokers.commands import ExitCode
from fakebrokers.protocol import protocols
from tests.clock_jumps import YEAR_S, jumps
from tests.eventually import PATIENCE_S
from tests.proxy.control import Api

SHIPPED = [each.name for each in protocols() if each.server.startswith("fakebrokers.")]


def goes_on(control: Api, broker: str, url: str, jump: Callable[[float], None]) -> None:
    """An outage ends, a client comes, a wait expires, and all of it is in order in the journal."""
    address = urlsplit(url)
    assert address.hostname and address.port
    for number, off_s in enumerate((10 * YEAR_S, -10 * YEAR_S, 0.0), 1):
        assert control("POST", f"{broker}/refuse", {"for_s": 0.05})[:2] == (204, None)
        jump(off_s)
        wanted = {"kind": "listening", "count": number, "timeout": PATIENCE_S}
        assert control("POST", f"{broker}/wait_for", wanted)[0] == 200
        with socket.create_connection((address.hostname, address.port), PATIENCE_S):
            assert control("GET", f"{broker}/connections")[0] == 200
        in_vain = {"kind": "listening", "count": number + 1, "timeout": 0.05}
        assert control("POST", f"{broker}/wait_for", in_vain)[0] == 408
    status, lines, _ = control("GET", f"{broker}/journal")
    assert status == 200
    times = [json.loads(line)["at"] for line in lines.splitlines()]
    assert times == sorted(times) and times[-1] - times[0] < PATIENCE_S


@pytest.mark.parametrize("protocol", SHIPPED)
def test_in_this_process(control: Api, protocol: str) -> None:
    with jumps():
        status, row, _ = control("POST", "/brokers", {"protocol": protocol, "name": "b", "options": {}})
        assert status == 201
        shown = [0.0]

        def jump(off_s: float) -> None:
            by = off_s - shown.pop()
            assert control("POST", "/brokers/b/shift_clock", {"seconds": by})[0] == 204
            shown.append(off_s)

        goes_on(control, "/brokers/b", row["url"], jump)


@pytest.mark.full
@pytest.mark.parametrize("protocol", SHIPPED)
def test_on_a_machine(protocol: str, tmp_path: Path) -> None:
    """The date of the whole process is that of a file; its monotonic clock stays the machine's."""
    faketime = shutil.which("faketime") or pytest.skip("missing: faketime (apt-get install faketime)")
    asked = [faketime, "-f", "+0", "sh", "-c", 'echo "$LD_PRELOAD"']
    library = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    dates = tmp_path / "dates"

    def jump(off_s: float) -> None:
        new = tmp_path / "new"
        new.write_text(f"{off_s:+.0f}\n")
        new.replace(dates)

    jump(-10 * YEAR_S)
    place = str(tmp_path / "journal")
    faked = {"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": str(dates), "FAKETIME_NO_CACHE": "1"}
    served = subprocess.Popen(
        [sys.executable, "-m", "fakebrokers", "serve", protocol, "--control", "0", "--journal", place],
        env={**os.environ, **faked, "FAKETIME_DONT_FAKE_MONOTONIC": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert served.stdout is not None
    try:
        ready = served.stdout.readline().split()
        assert ready[:2] == ["READY", protocol]
        (control,) = [word.partition("=")[2] for word in ready if word.startswith("control=")]
        (broker,) = Api(control)("GET", "/brokers")[1]
        goes_on(Api(control), f"/brokers/{broker['name']}", ready[2], jump)
    finally:
        served.send_signal(signal.SIGTERM)
        said = served.communicate(timeout=PATIENCE_S)
    assert (said, served.returncode) == (("", ""), ExitCode.OK)
    then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=10 * YEAR_S)
    assert [path.name for path in (tmp_path / "journal").glob(f"{protocol}-{then.year}*")]
