"""Where the windows of convolutions and pools lie along an axis."""


def windows_along(
    size: int, window: int, stride: int, pads: tuple[int, int], auto_pad: str, *, ceil: bool
) -> tuple[int, int]:
    """Number of windows along an axis, and the padding before it.

    Args:
        size: The extent of the axis.
        window: What one window spans.
        stride: From one window to the next.
        pads: Before and behind; only where ``auto_pad`` leaves them to it.
        auto_pad: ONNX's attribute.
        ceil: Whether a last window may reach beyond the padding behind.
    """
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        count = -(-size // stride)
        total = max(0, (count - 1) * stride + window - size)
        return count, total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
    begin, end = (0, 0) if auto_pad == "VALID" else pads
    room = size + begin + end - window
    count = (-(-room // stride) if ceil else room // stride) + 1
    if ceil and (count - 1) * stride >= size + begin:
        count -= 1  # a window does not start in the padding behind
    return count, begin
