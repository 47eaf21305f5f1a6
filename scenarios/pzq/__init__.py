"""PZQ: producers, consumers and the monitor."""
