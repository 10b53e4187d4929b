"""Parts of the web page, one section a file, with its style sheet and behaviour."""
