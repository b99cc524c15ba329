"""``cwb check``: a schedule file is judged, whoever made it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import ExitStatus, InputError

if TYPE_CHECKING:
    from ..core.instance import Instance
    from ..schedules.files import ScheduleFile
    from ..schedules.verify import Report


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--instance", metavar="SPEC", help="Refuse a schedule for another instance than this.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as one JSON object on stdout.")
def check(file: Path, instance: str | None, as_json: bool) -> int:
    """Verify the schedule in FILE, and its certificate if it has one.

    \b
    cwb check s.json
    cwb check s.json.gz --instance instances/torus.json --json

    SPEC is a file, the name of a shipped instance or an expression such as "torus(8,8)"; one without a collective is
    compared by its network. The exit status is 5 if the schedule is wrong, 2 if it cannot be read or is for
    another instance.
    """
    from ..schedules.files import read_schedule
    from ..schedules.verify import verify

    read = read_schedule(file)
    if instance is not None:
        _same_instance(file, read.instance, instance)
    report = verify(read.instance, read.answer)
    bound, missed = recomputed_bound(read)
    violations = [*map(str, report.violations), *missed]
    if as_json:
        click.echo(json.dumps(_verdict(file, read, report, bound, violations), allow_nan=False))
    else:
        _show(file, read, report, bound, violations)
    return int(ExitStatus.VERIFICATION_FAILED if violations else ExitStatus.OK)


def _same_instance(file: Path, found: Instance, spec: str) -> None:
    """Refuse a schedule for another instance than the one that the user names."""
    from ..instances import load

    expected = load(spec)
    if expected.demand is None:
        expected = expected.with_changes(demand=found.demand)
    if expected.sha256 != found.sha256:
        text = f"is for the instance {found.sha256[:12]}…, not for {spec} ({expected.sha256[:12]}…)"
        raise InputError(text, source=str(file), place="instance_sha256")


def recomputed_bound(read: ScheduleFile) -> tuple[float | None, list[str]]:
    """Recompute the bound of a certificate; also say where the file claims more than it proves."""
    from ..schedules.collective import proved_bound

    try:
        bound = proved_bound(read.instance, read.certificate)
    except InputError as error:
        return None, [f"certificate: {error}"]
    claimed = read.extra.get("bound_s")
    if bound is not None and isinstance(claimed, int | float) and claimed > bound * (1 + 1e-9):
        return bound, [f"certificate: claimed bound {claimed!r} s, it proves {bound!r} s"]
    return bound, []


def _verdict(
    file: Path, read: ScheduleFile, report: Report, bound: float | None, violations: list[str]
) -> dict[str, Any]:
    return {
        "file": str(file),
        "instance": read.instance.name,
        "instance_sha256": read.instance.sha256,
        "answer": type(read.answer).__name__,
        "verified": not violations,
        "violations": violations,
        "warnings": list(map(str, report.warnings)),
        "counts": dict(report.counts),
        "bound_s": bound,
    }


def _show(file: Path, read: ScheduleFile, report: Report, bound: float | None, violations: list[str]) -> None:
    for line in violations:
        click.echo(line)
    for warning in report.warnings[:3]:
        click.echo(f"warning: {warning}")
    demand = read.instance.demand
    what = f"{demand.collective.value} of {read.instance.npus} ranks" if demand else read.instance.name
    proved = "" if bound is None else f"; its certificate proves {bound:.9g} s"
    if violations:
        total = sum(n for kind, n in report.counts.items() if kind != "useless")
        click.echo(f"{file}: WRONG, {max(total, len(violations))} violations in a schedule of {what}{proved}")
    else:
        click.echo(f"{file}: right, a schedule of {what}{proved}")
