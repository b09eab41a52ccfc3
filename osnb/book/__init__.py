"""Runs of notebooks: begun, made, checked, packed and shown. `begin` opens one in a notebook."""

from osnb.book.runs import begin
