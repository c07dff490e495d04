"""Pages for people, drawn from verified JSON: report.html, review.html, and the sentences that explain an artifact."""
