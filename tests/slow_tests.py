"""List the tests that the fast loop leaves out, by the times of a run.

``pytest -n 2 --junitxml=build/times.xml``, then ``python tests/slow_tests.py build/times.xml``, writes
``slow_tests.txt``; ``conftest.py`` marks these tests as slow.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

#: Seconds that all cases of a test take together, at least.
LEAST_S = 0.3

LIST = Path(__file__).with_name("slow_tests.txt")


def slow_tests(report: Path) -> list[str]:
    """Return the tests of a report, without their cases, that take at least as long."""
    seconds: Counter[str] = Counter()
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 (our own)
        path, name = case.attrib["classname"].replace(".", "/"), case.attrib["name"].partition("[")[0]
        seconds[f"{path}.py::{name}"] += float(case.attrib["time"])
    return sorted(test for test, total in seconds.items() if total >= LEAST_S)


if __name__ == "__main__":
    LIST.write_text("\n".join(slow_tests(Path(sys.argv[1]))) + "\n", encoding="utf-8")
