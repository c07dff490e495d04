"""Where a bucket's changes come from: a watched folder, an events queue, a webhook, Lambda. None imports the runner."""
