"""What a client in this process draws at random follows the seed of the schedule, so that runs repeat."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch


@contextmanager
def repeatable(seed: str) -> Iterator[None]:
    """Inside the block the module `random` and ``secrets.token_bytes`` follow the seed."""
    state = random.getstate()
    random.seed(seed)
    try:
        with patch.object(secrets, "token_bytes", random.Random(seed).randbytes):
            yield
    finally:
        random.setstate(state)
