"""The commands by name: one module each, loaded on demand."""

import importlib
from typing import Any

COMMANDS = {
    "up": "watch the bucket, run jobs and clean up, all in one process; Ctrl-C drains",
    "run": "one runner process; with --drain it exits when no work is left",
    "sweep": "scan the inbox once and record its drops",
    "drop": "put files and a manifest into the bucket",
    "try": "run a manifest on local files: same engine and sandbox, no bucket",
    "test": "run the test cases of a config package and show what differs, cell by cell",
    "diff": "compare two results: mapping, rows, cells, findings; breaking or not",
    "explain": "why a cell of an output is what it is: source, reading, mapping, rules, findings",
    "scan": "show the tables that the engine finds in files",
    "map": "show which column of a file would become which field, and why",
    "learn": "put confirmed columns into a memory",
    "workflow": "standing workflows: list, show, diff, draft, promote, revert",
    "replay": "history again with another version of a workflow, and what would differ",
    "memory": "what a workflow has learnt: show, forget, export",
    "jobs": "list jobs, newest first",
    "status": "everything about one job",
    "logs": "what a job's rules printed",
    "outputs": "list or download what a job published",
    "unload": "take results out of the tables that they were loaded into",
    "review": "answer the questions of a job that waits for a person",
    "retry": "run jobs again that ended without success",
    "retry-failed": "retry every job that failed or ran out of time",
    "cancel": "stop jobs that have not ended",
    "reset": "run an ended job again; a good result stays until the next one is published",
    "remove": "delete a job: its row, its outputs and its input",
    "pause": "stop starting jobs: all, of a tenant or of a workflow",
    "resume": "end a pause",
    "quarantine": "accept nothing of a tenant and run nothing of it, until you end that",
    "erase": "delete everything of a tenant, and prove it",
    "queue": "show the queue and its dead letters, or import messages",
    "janitor": "do the chores: rescue, publish, enqueue, expire, collect",
    "serve": "the console and the job API alone, over any bucket, table and queue",
    "token": "tokens of the API: new, list, revoke",
    "link": "upload links for people without an account: new, list, revoke",
    "actions": "who did what through the API, newest first",
    "backup": "copy the data folder while jobs run",
    "restore": "put a backup into an empty data folder",
    "move": "move jobs and messages from the data folder to PostgreSQL",
    "listen": "receive bucket events from a queue or a webhook",
    "infra": "create the bucket, queues, table and notifications of the cloud settings",
    "deploy": "the CloudFormation stack: what it would create, its template, the handler's zip",
    "init": "create a config package: drafted from samples, or a commented one that works",
    "contract": "write a manifest as a contract of another tool: JSON Schema, ODCS, Frictionless, PostgreSQL",
    "template": "write a blank workbook for senders: headers, notes, drop-downs and checks",
    "manifest-schema": "print the JSON Schema of the manifest",
    "doctor": "check this machine and say how to fix problems",
    "demo": "three messy spreadsheets from start to finish",
    "completion": "print a completion script for bash, zsh or fish",
    "version": "print the version",
}


def module_of(name: str) -> Any:
    """The module of a command: `arguments(parser)` and `run(args, out)`."""
    word = {"try": "try_", "map": "map_", "manifest-schema": "schema"}.get(name, name.replace("-", "_"))
    return importlib.import_module(f"console.cli.commands.{word}")
