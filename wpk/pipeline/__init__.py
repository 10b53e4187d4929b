"""``wpk.optimize`` and ``wpk.rebuild``: from a model to a verified plan."""

from wpk.pipeline.beforehand import preview, recall
from wpk.pipeline.from_lock import rebuild
from wpk.pipeline.from_model import optimize
