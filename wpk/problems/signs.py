"""Signs that look like letters, by name: a reader of the code sees which one is meant."""

TIMES = "\N{MULTIPLICATION SIGN}"
MINUS = "\N{MINUS SIGN}"
DASH = "\N{EN DASH}"
