"""The tuning store holds every trial ever measured, and the runs."""

from wpk.search.store.key import Setup, StoreKey, problem_digest
from wpk.search.store.lookup import History, look_up
from wpk.search.store.others import measured_by_others
from wpk.search.store.records import RunRecord, RunRequest, RunState, Stage
from wpk.search.store.store import MODELS, TuningStore
from wpk.search.store.summary import Group, summarize
from wpk.search.store.transfer import export_lines, import_lines
