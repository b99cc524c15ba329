"""Make the gallery: ``python docs/gallery.py`` runs its commands, and writes the pictures and the page.

``python docs/gallery.py NAME...`` makes some pictures again. Pages are photographed with Chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cwb.reports.plots.look import COLOURS, COLUMN_IN, draw_as, new_figure
from matplotlib.figure import Figure
from PIL import Image

DOCS = Path(__file__).parent
PICTURES = DOCS / "images" / "gallery"
PAGE, FRONT = DOCS / "gallery.md", DOCS / "index.md"
FOLDER = DOCS.parent / "build" / "gallery"  #: Where the commands run.

#: Commands that several pictures need, by the file or folder that they write.
BEFORE = {
    "s.json": 'cwb solve --model tacos "torus(4,4)" --collective all_gather --size "16 MiB" -o s.json',
    "forest.json": "cwb solve --model forestcoll ndv2 --collective all_gather -o forest.json",
    "plan.json": "cwb solve --model mtree gscale -O trees=3 -o plan.json",
    "view.html": "cwb view s.json -o view.html",
    "results": "cwb compare docs/images/gallery.toml -o results",
    "race": 'cwb compare --models hierarchical,pccl,tacos,teccl,ten-ilp --instances "torus(4,4),dgx1()" '
    "--collectives all_gather --sizes 1MiB -o race",
    "libra": "cwb compare docs/images/libra-4d.toml -o libra",
    "libra-budgets": "cwb compare docs/images/libra-budgets.toml -o libra-budgets",
}


@dataclass(frozen=True)
class Picture:
    """A picture of the gallery, with the command under it."""

    name: str
    title: str
    about: str
    command: str
    before: tuple[str, ...] = ()
    page: str = "schedules/plots"  #: The page that explains it.
    photo: str = ""  #: Anchor of the page to photograph; a picture without one is the command's own file.
    window: str = "1300,900"
    top: int = 0  #: Pixels of the photograph that are cut off at the top.

    @property
    def file(self) -> str:
        """Name of the picture."""
        return f"{self.name}{'.png' if self.photo else Path(self.command.split()[-1]).suffix}"


GROUPS: dict[str, tuple[Picture, ...]] = {
    "Machines": (
        Picture(
            "machine",
            "A machine",
            "Links by bandwidth, GPUs of a box under their rails.",
            'cwb plot "dgx_h100(boxes=2)" -o machine.svg',
        ),
        Picture(
            "sensitivity",
            "The value of links",
            "Where more bandwidth helps.",
            "cwb solve --model forestcoll ndv2 --collective all_gather --sensitivity --picture sensitivity.svg",
            page="explaining",
        ),
        Picture(
            "frontier",
            "Networks to build",
            "Steps against bandwidth of all good networks of a size and degree.",
            "cwb find-topology --nodes 16 --degree 4 --plot frontier.svg",
            page="methods/topology-finder",
        ),
        Picture(
            "advice",
            "Advice on a machine",
            "NCCL, the best schedule found and what is possible, by size.",
            'cwb advise "dgx_h100(boxes=2)" --collective all_gather -o advice.html',
            page="advising",
            photo="#",
            window="1300,1000",
        ),
    ),
    "Schedules": (
        Picture(
            "player",
            "A schedule that plays",
            "Chunks move; ranks fill; a click shows what a rank waits for.",
            "cwb view s.json -o view.html",
            ("s.json",),
            photo="#0.4",
        ),
        Picture(
            "gantt-page",
            "Links over time, to zoom",
            "The lower part of the same page, with the bound as a dashed line.",
            "cwb plot s.json -o view.html",
            ("s.json",),
            photo="#",
            window="1300,1360",
            top=742,
        ),
        Picture(
            "gantt",
            "Links over time",
            "The busiest links, coloured by step.",
            "cwb plot s.json --kind gantt -o gantt.svg",
            ("s.json",),
        ),
        Picture(
            "utilization",
            "Utilization",
            "The mean of all links, and the busiest one.",
            "cwb plot s.json --kind utilization -o utilization.svg",
            ("s.json",),
        ),
        Picture("heatmap", "Loads", "Bytes and time of every link.", "cwb plot s.json -o heatmap.svg", ("s.json",)),
        Picture(
            "trees",
            "Trees, level by level",
            "A tree of a forest.",
            "cwb plot forest.json --kind trees --tree 0 -o trees.svg",
            ("forest.json",),
        ),
        Picture(
            "tree",
            "A tree over the network",
            "The same tree where its edges run.",
            "cwb plot forest.json --kind network --tree 0 -o tree.svg",
            ("forest.json",),
        ),
        Picture(
            "map",
            "Trees as lanes",
            "Three trees between sites fill most of the links.",
            "cwb plot plan.json --kind map -o map.svg",
            ("plan.json",),
        ),
        Picture(
            "timeline",
            "A training iteration",
            "Computation and collectives of every stream.",
            'cwb train "RI(4)_FC(8)_SW(8)" -w gpt-3-pipeline --bandwidth "200 GB/s, 100 GB/s, 50 GB/s" --loop ddp'
            " --microbatches 16 --timeline timeline.png",
            page="training",
        ),
    ),
    "Comparisons": (
        Picture(
            "report",
            "A report",
            "All plots, tables and failures of a comparison on one page.",
            "cwb report results -o report.html",
            ("results",),
            "reporting",
            photo="#",
            window="1300,1000",
        ),
        *(
            Picture(name, title, about, f"cwb plot {name} results -o {name}.svg", ("results",), "reporting")
            for name, title, about in (
                ("performance-profile", "Performance profiles", "The share of problems within a factor of the best."),
                ("gap-profile", "Gaps over instances", "The share of problems within a gap to the bound."),
                ("bandwidth", "Bandwidth over size", "As nccl-tests draws it."),
                ("gap-time", "Gap against time", "What a smaller gap costs in computing time."),
                ("gap-heatmap", "Gaps of all methods", "One cell a method and problem."),
                ("time-size", "Time against the size of the model", "A point for each run with a solver."),
                ("scaling", "Scaling", "Own time against ranks, with the fitted exponent."),
            )
        ),
        Picture(
            "anytime",
            "Gaps over time",
            "How soon a method is near its best answer.",
            "cwb plot anytime race -o anytime.svg",
            ("race",),
            "reporting",
        ),
        Picture(
            "libra-allocation",
            "Where the bandwidth goes",
            "LIBRA's shares of the dimensions.",
            "cwb plot libra-allocation libra -o libra-allocation.svg",
            ("libra",),
            "reporting",
        ),
        Picture(
            "libra-speedup",
            "Speed-up over equal bandwidth",
            "LIBRA over budgets.",
            "cwb plot libra-speedup libra-budgets -o libra-speedup.svg",
            ("libra-budgets",),
            "reporting",
        ),
    ),
}


#: Chromium without a window, without a network.
CHROMIUM = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=3000"),
)


def make(picture: Picture) -> None:
    """Run the commands of a picture, and keep what they draw."""
    for name in picture.before:
        if not (FOLDER / name).exists():
            execute(BEFORE[name])
    execute(picture.command)
    written = shlex.split(picture.command)[-1]
    if picture.photo:
        photograph(FOLDER / written, picture)
    else:
        shutil.copyfile(FOLDER / written, PICTURES / picture.file)


def execute(command: str) -> str:
    """Run a command in the folder of the gallery and return what it prints; its exit status must be 0."""
    print(command, flush=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    docs = FOLDER / "docs"
    if not docs.exists():
        docs.symlink_to(DOCS)
    words = shlex.split(command)
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    quiet = ["--quiet"] if words[1] in {"solve", "compare", "advise"} else []
    found = os.environ | {"PATH": programs}
    return subprocess.run([*words, *quiet], cwd=FOLDER, check=True, stdout=subprocess.PIPE, text=True, env=found).stdout


def photograph(page: Path, picture: Picture) -> None:
    """Photograph a page, and cut off its top."""
    program = next(p for name in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(name)))
    target = PICTURES / picture.file
    shot = [f"--screenshot={target}", f"--window-size={picture.window}", f"{page.as_uri()}{picture.photo}"]
    subprocess.run([program, *CHROMIUM, *shot], check=True, capture_output=True)
    with Image.open(target) as whole:
        whole.crop((0, picture.top, whole.width, whole.height)).save(target, optimize=True)


def page() -> str:
    """The page: a card for each picture, with its command under it."""
    lines = [
        "# Gallery",
        "",
        "Every kind of plot and page that cwb makes, each with the command that makes it.",
        "`python docs/gallery.py` runs all of them and writes this page.",
        "",
    ]
    for title, pictures in GROUPS.items():
        lines += [f"## {title}", "", "::::{grid} 1 1 2 2", ":gutter: 3", ""]
        for each in pictures:
            lines += [
                f":::{{grid-item-card}} {each.title}",
                f":img-top: images/gallery/{each.file}",
                f":img-alt: {each.title}",
                ":class-img-top: shown",
                "",
                each.about,
                f"[More]({each.page}.md)",
                "",
                "```console",
                *(f"$ {BEFORE[name]}" for name in each.before),
                f"$ {each.command}",
                "```",
                ":::",
                "",
            ]
        lines += ["::::", ""]
    return "\n".join(lines)


#: The front page's picture: what is shown, in words of its readers, by the key of a row of ``cwb advise --json``.
HERO = 'cwb advise "dgx_h100(boxes=2)" --collective all_gather --json'
CURVES = {"bound_s": "possible (proved bound)", "best_s": "best schedule found", "nccl_s": "NCCL's schedule"}
SHOWN = 2**30  #: The size that the sentences below the picture are about.
_HERO = re.compile("(?<=<!-- hero: written by python docs/gallery.py -->\n).*?(?=<!-- end of hero -->)", re.DOTALL)


def make_hero() -> None:
    """Run the command of the front page's picture, and keep its rows and the picture."""
    found = json.loads(execute(HERO))
    rows = [{key: row[key] for key in ("size_bytes", *CURVES)} for row in found["rows"]]
    kept = {"busbw_factor": found["busbw_factor"], "rows": rows}
    (PICTURES / "hero.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    (PICTURES / "hero.svg").write_bytes(draw_as("svg", draw_hero, kept))


def draw_hero(kept: dict[str, Any]) -> Figure:
    """Draw bus bandwidth over the size, each curve with its name at its end."""
    figure = new_figure(2.6, 2 * COLUMN_IN)
    axes = figure.subplots()
    for (key, name), colour, width in zip(
        CURVES.items(), ("#777777", COLOURS[0], COLOURS[4]), (1.0, 1.8, 1.8), strict=True
    ):
        sizes = [row["size_bytes"] for row in kept["rows"]]
        rates = [kept["busbw_factor"] * row["size_bytes"] / row[key] / 1e9 for row in kept["rows"]]
        axes.plot(sizes, rates, color=colour, linewidth=width, linestyle="--" if key == "bound_s" else "-", label=name)
    axes.set_xscale("log", base=2)
    axes.set_xticks([2**10, 2**20, 2**30], ["1 KiB", "1 MiB", "1 GiB"])
    axes.set_xticks([], minor=True)
    axes.set_ylim(bottom=0)
    axes.set(xlabel="size of the all-gather", ylabel="bus bandwidth (GB/s)")
    axes.set_title("all-gather on two boxes of eight H100s", loc="left")
    axes.grid()
    axes.legend(loc="upper left")
    return figure


def fill_front(page: str) -> str:
    """Write the picture and its sentences into the front page."""
    kept = json.loads((PICTURES / "hero.json").read_text(encoding="utf-8"))
    row = next(row for row in kept["rows"] if row["size_bytes"] == SHOWN)
    nccl, best, bound = (f"{1000 * row[key]:.3f} ms" for key in ("nccl_s", "best_s", "bound_s"))
    text = [
        ":::{figure} images/gallery/hero.svg",
        ":alt: Bus bandwidth of an all-gather over its size: NCCL's schedule, the best schedule found, and the bound.",
        ":width: 100%",
        "",
        f"NCCL's schedule of an all-gather of 1 GiB on two boxes of eight H100s takes {nccl}.",
        f"The best schedule found takes {best}, and none can take less than {bound}.",
        "All three are times of the links, without launches.",
        f"Made by `{HERO}` and `python docs/gallery.py`.",
        ":::",
        "",
    ]
    return _HERO.sub(lambda _: "\n".join(text), page)


def main(names: list[str]) -> None:
    """Make all pictures, or those named, and the pages."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for pictures in GROUPS.values():
        for each in pictures:
            if not names or each.name in names:
                make(each)
    if not names or "hero" in names:
        make_hero()
    PAGE.write_text(page(), encoding="utf-8")
    FRONT.write_text(fill_front(FRONT.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="pictures; by default all")
    main(parser.parse_args().names)
