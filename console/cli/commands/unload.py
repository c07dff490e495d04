"""`ade unload JOB…`: take results out of the tables that they were loaded into."""

import argparse

from console.cli import wire
from console.cli.acts import add_jobs
from console.cli.guard import Exit
from console.cli.output import Printer
from core.errors import UsageError
from infra.loads import Loads, load_rules

arguments = add_jobs


def run(args: argparse.Namespace, out: Printer) -> int:
    with wire.opened() as stack:
        loads = Loads(stack.settings, stack.store, stack.clock)
        control = wire.make_control(stack)
        done: list[dict[str, object]] = []
        for job_id in args.jobs:
            job = control.find(job_id)
            if not load_rules(job):
                raise UsageError(f"job {job_id} loads its rows into no table: its manifest has no output.load")
            withdrawn = control.withdraw_loads(job_id)  # first, or its rows would come after they were taken out
            done.append({"job_id": job_id, "rows": loads.unload(job), "withdrawn": withdrawn})
        if out.as_json:
            out.emit(done)
        else:
            for one in done:
                more = "; its load waited for the database and is given up" if one["withdrawn"] else ""
                out.line(f"{one['job_id']}: {one['rows']:,} rows taken out{more}")
    return Exit.OK
