"""The tuning loop: from what the models choose to the fastest whole engine that was measured."""

from wpk.search.loop.budget import Watch, share_of
from wpk.search.loop.cache_folder import KEEP_BYTES, CacheFolder
from wpk.search.loop.choices import Choices, static_choices
from wpk.search.loop.confirmation import OnRivals
from wpk.search.loop.evidence import evidence_of
from wpk.search.loop.form_contest import FormContest, chosen_by_models, competes
from wpk.search.loop.measured_model import Workshop, measured_model
from wpk.search.loop.measuring import choose_target, plan_tuning, setup_here
from wpk.search.loop.model_tuning import ModelTuning, cases_of
from wpk.search.loop.preview import Preview, ProblemPreview, preview_of
from wpk.search.loop.selection import matching, require_measuring, selected_problems
from wpk.search.loop.tuning import Equipment, Tuning
from wpk.search.loop.twins import twins_of
