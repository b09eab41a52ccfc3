"""The course: one source of notebooks, a students' and a lecturer's copy, and a bundle of it."""

from osnb.teach.course.copies import build, build_term, bundle, check, learn
from osnb.teach.course.leaks import leaks
