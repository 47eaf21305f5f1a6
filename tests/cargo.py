"""Whether Rust programs can be built here."""

from __future__ import annotations

import re
import subprocess

#: The oldest cargo that reads the lock files.
LEAST = (1, 78)


def missing_cargo() -> str:
    """What is missing for it; "" if nothing is."""
    try:
        told = subprocess.run(["cargo", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "cargo"
    found = re.match(r"cargo (\d+)\.(\d+)", told)
    if found is None or tuple(map(int, found.groups())) < LEAST:
        return f"cargo {LEAST[0]}.{LEAST[1]} or newer (there is {told.strip()})"
    return ""
