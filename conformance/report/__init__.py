"""The report: one HTML file that needs no network and no server."""

from conformance.report.write import write_report

__all__ = ["write_report"]
