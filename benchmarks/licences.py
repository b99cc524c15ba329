"""The packages that cwb needs, with version and licence, as they are installed here.

    python benchmarks/licences.py                   # what 'pip install cwb' needs, and what those need
    python benchmarks/licences.py --extra scip      # and what an extra needs
    python benchmarks/licences.py --requirements    # NAME==VERSION lines, for an auditor
    python benchmarks/licences.py --audit           # known vulnerabilities of these versions, by pip-audit

Exit status 1 if a package that cwb needs without extras has a licence that is not permissive, or none, or is missing;
with ``--audit``, if a version is known to be vulnerable, or nothing is known of it. Only the audit asks the network,
and needs pip-audit, which is no dependency of cwb.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

#: Words of licences that a program of any licence may build on; of several that are joined by "or" one is enough.
PERMISSIVE = re.compile(
    r"\b(MIT|BSD|Apache|PSF|Python Software Foundation|ISC|HPND|0BSD|Zlib|CNRI|CC0|Unlicense|MPL)\b", re.IGNORECASE
)
COPYLEFT = re.compile(r"\b(A?GPL|GNU)", re.IGNORECASE)


@dataclass(frozen=True)
class Package:
    """A package that is installed, or missing, and its licence as it says itself."""

    name: str
    version: str
    licence: str

    @property
    def permissive(self) -> bool:
        """True if the licence is permissive."""
        return PERMISSIVE.search(self.licence) is not None and COPYLEFT.search(self.licence) is None


def licence_of(found: metadata.PackageMetadata) -> str:
    """Licence of a package: the expression, else the classifiers, else the first line of what it says."""
    if expression := found.get("License-Expression"):
        return str(expression)
    classifiers = [c.rsplit(" :: ", 1)[1] for c in found.get_all("Classifier") or [] if c.startswith("License ::")]
    named = [c for c in classifiers if c != "OSI Approved"]
    said = str(found.get("License") or "").strip().splitlines()
    return ", ".join(named) or (said[0][:60] if said else "unknown")


def required_packages(extras: set[str]) -> list[Package]:
    """Packages that cwb needs with these extras, in the order of their names, without cwb itself."""
    found: dict[str, Package] = {}
    waiting = [("cwb", frozenset(extras))]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        name, wanted = waiting.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            found[name] = Package(name, "missing", "unknown")
            continue
        found[name] = Package(name, package.version, licence_of(package.metadata))
        for text in package.requires or []:
            requirement = Requirement(text)
            if any(requirement.marker is None or requirement.marker.evaluate({"extra": e}) for e in (wanted or {""})):
                waiting.append((canonicalize_name(requirement.name), frozenset(requirement.extras)))
    return [package for name, package in sorted(found.items()) if name != "cwb"]


def audit(requirements: str) -> int:
    """Return the versions to pip-audit; its exit status."""
    program = shutil.which("pip-audit")
    if program is None:
        print("pip-audit is not installed; expected 'pip install pip-audit'", file=sys.stderr)
        return 1
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(requirements)
        file.flush()
        return subprocess.run(
            [program, "--strict", "--no-deps", "--disable-pip", "-r", file.name], check=False
        ).returncode


def main() -> int:
    """Print the packages, and tell whether all that are needed are permissive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extra", action="append", default=[], metavar="NAME", help="an extra of cwb, such as scip")
    parser.add_argument("--requirements", action="store_true", help="NAME==VERSION, a line for each")
    parser.add_argument("--audit", action="store_true", help="known vulnerabilities, by pip-audit")
    asked = parser.parse_args()
    packages = required_packages({"", *asked.extra})
    requirements = "".join(f"{p.name}=={p.version}\n" for p in packages if p.version != "missing")
    if asked.audit:
        return audit(requirements)
    if asked.requirements:
        print(requirements, end="")
        return 0
    width = max(len(p.name) for p in packages)
    core = {package.name for package in required_packages(set())}
    for package in packages:
        mark = "" if package.permissive else "  not permissive" if package.name in core else "  (extra)"
        print(f"{package.name:<{width}}  {package.version:<16}  {package.licence}{mark}")
    wrong = [package.name for package in packages if package.name in core and not package.permissive]
    print(f"{len(packages)} packages, {len(core)} of them always needed; not permissive: {', '.join(wrong) or 'none'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
