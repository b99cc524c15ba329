"""Find the packages: the root of the repository is ``cwb`` itself, a layout that pyproject.toml cannot describe."""

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py


class BuildPackages(build_py):
    """Build step that leaves this file out, which lies in the folder of ``cwb``."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """List the modules of a package."""
        modules = super().find_package_modules(package, package_dir)
        return [module for module in modules if module[:2] != ("cwb", "setup")]


setup(
    packages=["cwb", *(f"cwb.{name}" for name in find_packages(exclude=["tests*", "benchmarks*", "docs*"]))],
    cmdclass={"build_py": BuildPackages},
)
