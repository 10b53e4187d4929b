"""Searchers propose schedules."""

from wpk.search.searchers.base import Searcher
from wpk.search.searchers.experience import Experience, Lesson
from wpk.search.searchers.registry import MakeSearcher, find_searcher
from wpk.search.searchers.space import SearchSpace
