"""The program ``fakebrokers``; ``python -m fakebrokers`` is the same."""

from __future__ import annotations

import sys
from typing import NoReturn

from fakebrokers.errors import UsageError
from fakebrokers.extras import needs


def main() -> NoReturn:
    """Run the command line, where what it needs is installed (extra ``cli``)."""
    try:
        with needs("cli", "the command line"):
            from fakebrokers.cli import main as run
    except UsageError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(3)  # ExitCode.HARNESS
    run()


if __name__ == "__main__":
    main()
