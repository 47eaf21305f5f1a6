"""The mutants of the reference client for NATS."""
