"""What a reader gets: table, Markdown, HTML, plots, history in the object store."""
