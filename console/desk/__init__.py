"""Jobs at a desk: run on local files, without a bucket or a table. For `ade try` and for previews in the browser."""
