"""Times of whole executions, as ``trtexec --exportTimes`` writes them."""

from wpk.tensorrt.choosing.profile import MILLISECOND
from wpk.tensorrt.choosing.reading import entries, malformed, number_of, parsed


def parse_latencies(text: str) -> tuple[float, ...]:
    """Seconds on the GPU of every execution, without the transfers before and after.

    Raises:
        TensorRTError: The text is something else, or holds no execution.
    """
    records = entries(parsed(text, "the file of times"), "the file of times")
    if not records:
        raise malformed("the file of times", "no executions")
    seconds = []
    for index, record in enumerate(records):
        what = f"execution {index} of the file of times"
        if not isinstance(record, dict):
            raise malformed(what, f"a {type(record).__name__}")
        seconds.append(number_of(record, "computeMs", what) * MILLISECOND)
    return tuple(seconds)
