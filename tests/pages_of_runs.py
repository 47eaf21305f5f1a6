"""Reads what the page of a run was made of."""

from __future__ import annotations

import base64
import re
import zlib
from pathlib import Path

import msgspec

from fakebrokers.viewer import RunDocument


def documents(page: Path) -> list[RunDocument]:
    """The documents of a page, in order."""
    found = re.findall(r'class="data"[^>]*>([^<]*)<', page.read_text())
    return [
        msgspec.json.decode(zlib.decompress(base64.b64decode(packed)), type=RunDocument) for packed in found
    ]
