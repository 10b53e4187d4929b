"""What a person reads: the terminal's summary and the web page."""
