"""Drafts a manifest's fields from samples: reads all their rows, joins columns that mean the same, infers rules.

Runs in the box, because samples come from strangers: what it writes is `draft.json`, which whoever asked for it checks
again (console/desk/drafts.py). Its rules are meant for later files of the same senders, so each is left out unless the
samples leave little doubt; what a person could settle is a question beside the draft.
"""

from runner.engine.drafting.draft import draft

__all__ = ["draft"]
