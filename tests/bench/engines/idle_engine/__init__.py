"""The engine's imports without its work: what a job costs in this is the box alone."""
