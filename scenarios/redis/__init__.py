"""Redis: its scenarios, base scripts and workload."""
