"""The models choose schedules without a GPU."""

from wpk.search.models.kernel_choice import KernelChoice, choose, spill_words
from wpk.search.models.learned import learned_seconds
from wpk.search.models.load_costs import Template
from wpk.search.models.model_search import (
    Compiler,
    StaticChoices,
    choose_among,
    search_model,
)
from wpk.search.models.pruning import WAVES, Pruning, find_pruning
from wpk.search.models.scoring_pool import ScoringPool
from wpk.search.models.shortlist import PROMISING, Shortlist, estimates
from wpk.search.models.static_search import (
    FINALISTS,
    Finalist,
    Shortlists,
    check_skips,
    finalist_of,
    least_seconds,
    shortlist_all,
    shortlist_problems,
)
