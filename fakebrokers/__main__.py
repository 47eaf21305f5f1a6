"""``python -m fakebrokers`` is the same as ``fakebrokers``."""

from fakebrokers.cli import main

if __name__ == "__main__":
    main()
