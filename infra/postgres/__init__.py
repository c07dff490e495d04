"""JobTable and WorkQueue on PostgreSQL."""
