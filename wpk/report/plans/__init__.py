"""What is said about plans: reports in every form, the terminal's summary, comparisons."""

from wpk.report.plans.check_words import outcome_word, remarks
from wpk.report.plans.compare import PlanComparison, compare_plans
from wpk.report.plans.compare_text import compare_text
from wpk.report.plans.distance import distant_lines, distant_operators, launch_floor
from wpk.report.plans.formats import require_format, write_report
from wpk.report.plans.terminal import operator_source, short_summary, summary
