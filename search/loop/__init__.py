"""The tuning loop: from what the models choose to the fastest whole engine that was measured."""

from wpk.search.loop.budget import share_of
from wpk.search.loop.cache_folder import KEEP_BYTES, CacheFolder
from wpk.search.loop.choices import static_choices
from wpk.search.loop.confirmation import OnRivals, confirmed
from wpk.search.loop.evidence import evidence_of
from wpk.search.loop.measuring import choose_target, plan_tuning, setup_here
from wpk.search.loop.model_tuning import tune_model
from wpk.search.loop.preview import Preview, ProblemPreview, preview_of
from wpk.search.loop.selection import matching, require_measuring, selected_problems
from wpk.search.loop.tuning import Equipment, Tuning
from wpk.search.loop.twins import twins_of
