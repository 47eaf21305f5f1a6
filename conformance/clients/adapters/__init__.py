"""The clients that come with the suite: one folder per adapter, described by its ``adapter.toml``."""
