"""The password of all logins in tests, and where it is looked for: nowhere may it be kept.

The journal's own tests say it in every way that there is (`tests/journal/logins.py`); all others that log in
use it, too, but for guest, whose password is known. A fake that knows it looks through its journal when it
stops. At the end of a run each process looks through the files that its tests have left: journals, reports,
recordings, logs.
"""

from __future__ import annotations

import os
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fakebrokers.server import FakeServer

PASSWORD = "S3CRETpw91xQ"
#: CPU seconds that looking through the files of one process may take.
LOOK_S = 3.0
#: Bytes at both ends of a file that are looked at.
LOOKED_AT = 1 << 20


def _forms() -> list[str]:
    """The password as it may stand in text: as it is, in base64 after 0 to 2 bytes, in hexadecimal."""
    encoded = PASSWORD.encode()
    found = [PASSWORD, PASSWORD[::-1], encoded.hex()]
    for before in range(3):
        whole = b64encode(b"x" * before + encoded).decode()
        found.append(whole[4 if before else 0 : -4])
    return found


FORMS = _forms()
_BYTES = [form.encode() for form in FORMS]


def shown_in(text: str) -> list[str]:
    """The forms of the password that a text shows."""
    return [form for form in FORMS if form in text]


def files_that_show_it(top: Path) -> list[str]:
    """The files below a folder that hold the password, and a line if there was no time for all of them."""
    found, end = [], time.process_time() + LOOK_S
    for path in _files(top):
        if time.process_time() > end:
            found.append(f"{top}: not all looked at within {LOOK_S} s: tests leave too much")
            break
        if _shows(path):
            found.append(path)
    return found


def _files(top: Path) -> Iterator[str]:
    for folder, _, names in os.walk(top):  # follows no links
        yield from (os.path.join(folder, name) for name in names)


def _shows(path: str) -> bool:
    try:
        if not os.path.isfile(path) or os.path.islink(path):
            return False
        with open(path, "rb") as file:
            text = file.read(LOOKED_AT)
            if len(text) == LOOKED_AT:
                file.seek(max(LOOKED_AT, os.fstat(file.fileno()).st_size - LOOKED_AT))
                text += file.read(LOOKED_AT)
    except OSError:  # made for nobody to read
        return False
    return any(form in text for form in _BYTES)


def guard() -> None:
    """Have each fake that knows the password look through its journal once it has stopped."""
    stop = FakeServer.stop
    if stop.__module__ == __name__:  # a run of pytest in a test of ours
        return

    def stop_and_look(self: FakeServer) -> None:
        ran = self.runs
        stop(self)
        if ran and _knows_it(self):
            shown = [str(record) for record in self.journal.records() if shown_in(f"{record!r} {record}")]
            assert not shown, f"the password of the tests is in the journal of {self!r}: {shown[:3]}"

    FakeServer.stop = stop_and_look  # type: ignore[method-assign]


def _knows_it(server: FakeServer) -> bool:
    broker: Any = server.broker
    if access := getattr(broker, "access", None):
        return any(user.password == PASSWORD for user in access.users.values())
    if logins := getattr(broker, "logins", None):
        return PASSWORD in (*logins.users.values(), logins.token)
    if getattr(broker, "password", "") == PASSWORD or PASSWORD in getattr(broker, "users", {}).values():
        return True
    options = getattr(getattr(broker, "bus", None), "options", None)
    return getattr(options, "password", "") == PASSWORD or PASSWORD in str(getattr(server, "_upstream", ""))
