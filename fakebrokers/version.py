"""The version of both distributions, for modules that the package itself loads."""

__version__ = "0.2.0"
