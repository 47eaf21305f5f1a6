"""The failures in mocha's JSON report that a real RabbitMQ 4.3 would not have; exit 1 if there are any.

python ci/mocha_failures.py REPORT.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

#: What no stream listener can have, nor the package: AMQP 0.9.1, and certificates that are not packed.
NEEDED = ("ECONNREFUSED 127.0.0.1:5672", "./tls-gen/basic/result/")


def main(report: Path) -> int:
    """Print the counts and what failed without need."""
    reported = json.loads(report.read_text())
    stats = reported["stats"]
    unexpected = [
        f"{row['fullTitle']}: {row['err'].get('message', '')}"
        for row in reported["failures"]
        if not any(need in row["err"].get("message", "") for need in NEEDED)
    ]
    print(f"javascript: {stats['passes']} passed, {stats['failures']} failed, {stats['pending']} pending")
    for each in unexpected:
        print(f"  {each[:300]}")
    return 1 if unexpected or not stats["passes"] else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
