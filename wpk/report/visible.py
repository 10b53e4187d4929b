"""Names from models, made safe to show: a name may hold anything that a file can hold."""


def visible(text: str, limit: int | None = None) -> str:
    """The text with everything that prints no mark of its own written as an escape.

    Control characters would steer a terminal, and bidirectional ones would make a name read
    differently from what it is.

    Args:
        text: Any text.
        limit: Most characters to show; the middle of longer texts is left out.
    """
    if limit is not None and len(text) > limit:
        half = (limit - 1) // 2
        text = f"{text[:half]}…{text[-half:]}"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def visible_lines(text: str) -> str:
    """Like `visible` for a text of several lines."""
    return "\n".join(visible(line.replace("\t", "    ")) for line in text.split("\n"))
