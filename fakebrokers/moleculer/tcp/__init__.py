"""Moleculer's own TCP transporter: nodes that talk without a server."""
