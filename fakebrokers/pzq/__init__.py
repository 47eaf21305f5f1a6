"""PZQ: a store-and-forward queue over ZeroMQ, as a fake without Kyoto Cabinet behind it."""
