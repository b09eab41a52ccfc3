"""The course: one source of notebooks, a students' and a lecturer's copy, and a bundle of it."""

from osnb.teach.course.build import build
from osnb.teach.course.bundle import bundle, check
from osnb.teach.course.leaks import leaks

__all__ = ["build", "bundle", "check", "leaks"]
