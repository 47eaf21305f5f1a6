"""The one line by which the echo joins: fixtures, plans, journal and checkers follow from it."""

from fakebrokers.protocol import register

register("echo", "tests.echo.protocol")
