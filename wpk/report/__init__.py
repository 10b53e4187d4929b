"""What a person reads. This door holds plain text, `wpk.report.plans` what is said about plans."""

from wpk.report.blocks import Block, Facts, Table, format_table, plain_text, print_blocks
from wpk.report.engine_text import engine_text
from wpk.report.progress_line import ProgressLine, shown
from wpk.report.text import byte_size, visible, visible_lines
