"""Write 500 networks to nets/: a ring of 4 to 8 ranks with random rates, and one link across it."""

import json
from pathlib import Path
from random import Random

folder = Path("nets")
folder.mkdir(exist_ok=True)
for number in range(500):
    random = Random(number)  # noqa: S311 (no secret)
    count = random.randint(4, 8)
    pairs = [(i, (i + 1) % count) for i in range(count)] + [(0, count // 2)]
    links = [
        {
            "source": f"n{a}",
            "target": f"n{b}",
            "bandwidth": f"{random.choice([25, 50, 100])} GB/s",
            "latency": "1 us",
            "bidirectional": True,
        }
        for a, b in pairs
    ]
    network = {"nodes": [{"name": f"n{i}"} for i in range(count)], "links": links}
    text = json.dumps({"schema": "cwb-instance/1", "network": network}, indent=1)
    (folder / f"net{number:03}.json").write_text(text + "\n")
