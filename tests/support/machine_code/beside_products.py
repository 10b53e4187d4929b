"""What machine code of sm_90a computes while products of warpgroups are under way.

Nothing ties what is computed from the sums of one product to the wait for another one, and ptxas likes to wait first.
Numbers are the same; the products are beside nothing then.
"""

import re
from itertools import pairwise

_WAIT = re.compile(r"WARPGROUP\.DEPBAR\.LE gsb0, 0x([0-9a-f]+)")


def computed_beside(text: str, opcode: str) -> int:
    """Count the instructions behind a wait that leaves a group of products under way, up to the wait for that group.

    Args:
        text: A listing of one kernel.
        opcode: Of the instructions, or its first parts.

    Raises:
        ValueError: No wait leaves one group under way, or none awaits it.
    """
    waits = [(match.start(), int(match[1], 16)) for match in _WAIT.finditer(text)]
    for (begin, left), (end, others) in pairwise(waits):
        if left == 1 and others == 0:
            return len(re.findall(rf"(?<![\w.]){re.escape(opcode)}(?!\w)", text[begin:end]))
    raise ValueError(
        f"of the waits for products, which leave {[left for _, left in waits]}, none leaves 1 and then 0"
    )
