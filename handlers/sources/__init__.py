"""How changes of a bucket are heard: a watched folder, a queue of events, a webhook, Lambda. None knows the runner."""
