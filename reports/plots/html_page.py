"""Frame of the interactive page with the placeholders ``@TITLE@``, ``@NOTES@``, ``@DATA@`` and ``@SCRIPT@``."""

from __future__ import annotations

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>@TITLE@</title>
<style>
body { font: 14px/1.4 system-ui, sans-serif; margin: 1em auto; max-width: 1400px; padding: 0 1em; color: #222; background: #fff; }
h1 { font-size: 1.25em; margin: 0 0 .2em; overflow-wrap: anywhere; }
h2 { font-size: 1em; margin: 1.2em 0 .3em; }
p { margin: .2em 0; color: #555; }
p.note { color: #8a4b00; }
canvas { display: block; border: 1px solid #bbb; touch-action: none; }
#gantt { width: 100%; height: 460px; cursor: grab; }
.heats { display: flex; flex-wrap: wrap; gap: 1em; }
.heats > div { flex: 1 1 22em; max-width: 44em; min-width: 0; display: flex; flex-direction: column; justify-content: space-between; }
.heats h3 { font-size: .93em; font-weight: 400; margin: .2em 0; }
canvas.heat { width: 100%; aspect-ratio: 560 / 500; }
#tip { position: fixed; display: none; pointer-events: none; white-space: pre; background: #222; color: #fff;
  font: 12px/1.35 ui-monospace, monospace; padding: .4em .6em; border-radius: 4px; max-width: 90vw; z-index: 9; }
button, select { font: inherit; margin-right: .4em; }
</style>
</head>
<body>
<h1>@TITLE@</h1>
<p id="summary"></p>
@NOTES@
<h2>Links over time</h2>
<p>
<button id="in" title="zoom in">+</button><button id="out" title="zoom out">&minus;</button><button id="reset">all</button>
<label>colour: <select id="colour"></select></label>
wheel: zoom time; shift and wheel: more or fewer rows; drag: move; double click: all
</p>
<canvas id="gantt" tabindex="0" aria-label="Gantt chart of the links"></canvas>
<h2>Load of every directed link</h2>
<p>source (down) by target (across); grey: unused, white: no link</p>
<div class="heats">
<div><h3>Bytes</h3><canvas class="heat" data-of="bytes" aria-label="heat map of the bytes over the links"></canvas></div>
<div><h3>Utilization: time of the bytes at the link's bandwidth; the most loaded link is full</h3>
<canvas class="heat" data-of="used" aria-label="heat map of the utilization of the links"></canvas></div>
</div>
<div id="tip" role="status"></div>
<noscript><p>The plots are drawn by a script, which this browser does not run.</p></noscript>
<script type="application/json" id="data">@DATA@</script>
<script>
@SCRIPT@
</script>
</body>
</html>
"""
