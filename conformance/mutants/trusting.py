"""The TLS of a client that takes any certificate."""

from __future__ import annotations

import ssl


def trusting(ca_file: str | None) -> ssl.SSLContext:
    """A context that checks neither the host's name nor who signed."""
    context = ssl.create_default_context(cafile=ca_file)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
