"""A wheel holds the notebooks, params and goldens, which in a clone lie beside the package."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PROJECT = ("pyproject.toml", "requirements.lock", "CITATION.cff", "notebooks/*.ipynb")
PROJECT += ("params/**/*.yaml", "tests/golden/*.json")


class WithProject(build_py):
    """Puts them into osnb/project."""

    def run(self):
        """Build, then copy."""
        super().run()
        if self.editable_mode:
            return
        for file in (file for pattern in PROJECT for file in Path().glob(pattern)):
            target = Path(self.build_lib) / "osnb" / "project" / file
            self.mkpath(str(target.parent))
            self.copy_file(str(file), str(target))


setup(cmdclass={"build_py": WithProject})
