"""What a person reads. This door holds plain text, `wpk.report.plans` what is said about plans."""

from wpk.report.engine_text import engine_text
from wpk.report.text import byte_size, format_table, visible, visible_lines
