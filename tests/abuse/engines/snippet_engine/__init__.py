"""A stand-in for runner.engine that runs one snippet, `config/rule.py`, as the engine runs a rule."""
