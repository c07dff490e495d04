"""The pages of the console: templates over the same facade as the API, one style sheet, one script."""
