"""Memory: every buffer over the steps that it lives in, at its place in the arena."""

from wpk.report.plans.facts import ReportFacts
from wpk.report.plans.memory import BlockFacts, MemoryFacts
from wpk.report.plans.page.marks import kind_class
from wpk.report.plans.page.markup import Html, section, tag
from wpk.report.text import byte_size


def memory_section(facts: ReportFacts) -> Html:
    """Return the numbers, and the arena as a picture."""
    memory = facts.memory
    tuned = ", ".join(f"{name} = {size}" for name, size in facts.free.items())
    words = (
        f"Weights {byte_size(memory.weight_bytes)}. Activations share an arena of "
        f"{byte_size(memory.arena_bytes)}; {byte_size(memory.peak_bytes)} are alive at the fullest "
        "step, and no plan can need less. "
    )
    if memory.workspace_bytes:
        words += f"Scratch memory {byte_size(memory.workspace_bytes)}. "
    words += f"At the tuned sizes: {tuned}." if tuned else ""
    picture = _timeline(memory, len(facts.operators))
    return section("memory", "Memory", tag("p", words, class_="legend"), picture)


def _timeline(memory: MemoryFacts, steps: int) -> Html:
    """Steps run to the right, offsets in the arena upwards."""
    arena = max(memory.arena_bytes, 1)
    blocks = [_block(block, arena) for block in memory.blocks]
    peak = 100 - 100 * memory.peak_bytes / arena
    line = tag(
        "line",
        x1=-1,
        x2=steps + 1,
        y1=peak,
        y2=peak,
        vector_effect="non-scaling-stroke",
        class_="peak",
    )
    label = f"{len(blocks)} buffers over {steps} steps in {byte_size(memory.arena_bytes)}"
    drawing = tag(
        "svg",
        *blocks,
        line,
        viewBox=f"-1 0 {steps + 2} 100",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
    )
    scale = tag(
        "p",
        tag("span", "first step"),
        tag("span", "offset in the arena ↑, steps →, dashed: peak"),
        tag("span", "last step"),
        class_="scale",
    )
    return tag("div", drawing, scale, class_="timeline")


def _block(block: BlockFacts, arena: int) -> Html:
    height = 100 * block.bytes / arena
    names = ", ".join(block.values)[:300]
    return tag(
        "rect",
        tag("title", f"{names}: {byte_size(block.bytes)}, steps {block.first} to {block.last}"),
        x=block.first,
        width=block.last - block.first + 1,
        y=100 - 100 * block.offset / arena - height,
        height=height,
        vector_effect="non-scaling-stroke",
        class_=kind_class(block.kind),
    )
