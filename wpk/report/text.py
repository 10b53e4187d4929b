"""Plain text: names made safe to show, and sizes.

A name of a model may hold anything that a file can hold.
"""


def visible(text: str, limit: int | None = None) -> str:
    """Return a text with everything that prints no mark of its own written as an escape.

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
    """Do as `visible` does for a text of several lines."""
    return "\n".join(visible(line.replace("\t", "    ")) for line in text.split("\n"))


def byte_size(count: int) -> str:
    """Return a size in words: ``1.5 MiB``."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
