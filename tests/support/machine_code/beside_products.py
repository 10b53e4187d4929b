"""What machine code of sm_90a computes while products of warpgroups are under way.

Nothing ties what is computed from the sums of one product to the wait for another one, and ptxas likes to wait first.
Numbers are the same; the products are beside nothing then.
"""

import re
from itertools import pairwise

from support.machine_code.products_in_flight import instructions

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


def asked_for_ahead(text: str, opcode: str) -> int:
    """Count the loads in front of the last wait for products, behind the wait before, whose registers nobody touches until then.

    Args:
        text: A listing of one kernel.
        opcode: Of the loads, with all of its parts.
    """
    waits = [match.start() for match in _WAIT.finditer(text)]
    between = instructions(text[waits[-2] : waits[-1]])
    return sum(
        each.opcode == opcode
        and not any(set(each.written) & later.touched for later in between[place + 1 :])
        for place, each in enumerate(between)
    )
