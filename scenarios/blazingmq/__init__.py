"""Scenarios of BlazingMQ, one file per section of the catalogue."""
