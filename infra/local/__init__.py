"""The embedded adapters: a folder as the bucket, one SQLite file as table and queue."""
