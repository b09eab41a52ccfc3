"""Exercises, quizzes, the course's copies, and what a machine lacks."""
