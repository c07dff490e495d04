"""The job API over HTTP."""
