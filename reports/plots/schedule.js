'use strict';
const D = JSON.parse(document.getElementById('data').textContent), B = D.bars, N = B.row.length;
const $ = id => document.getElementById(id), tip = $('tip');
const clamp = (x, low, high) => Math.max(low, Math.min(high, x));
const round = x => String(Number(x.toPrecision(6)));
const quantity = (x, units) => { const u = units.find(v => x >= v[1]) || units[units.length - 1]; return round(x / u[1]) + ' ' + u[0]; };
const TIMES = [['s', 1], ['ms', 1e-3], ['us', 1e-6], ['ns', 1e-9]];
const SIZES = [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 1024], ['B', 1]];
const time = x => x === 0 ? '0' : quantity(x, TIMES), size = x => quantity(x, SIZES);
// Anchors of viridis, light to dark.
const SCALE = [[253,231,37],[159,218,58],[74,193,109],[31,161,135],[39,127,142],[54,92,141],[70,50,127],[68,1,84]];
function shade(share) {
  const x = clamp(share, 0, 1) * (SCALE.length - 1), i = Math.min(SCALE.length - 2, Math.floor(x)), f = x - i;
  return 'rgb(' + SCALE[i].map((c, k) => Math.round(c + f * (SCALE[i + 1][k] - c))).join(',') + ')';
}
function fit(canvas) {
  const box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1, c = canvas.getContext('2d');
  canvas.width = Math.round(box.width * ratio); canvas.height = Math.round(box.height * ratio);
  c.setTransform(ratio, 0, 0, ratio, 0, 0); c.clearRect(0, 0, box.width, box.height);
  c.font = '11px system-ui, sans-serif'; c.textBaseline = 'middle';
  return [c, box.width, box.height];
}
function cut(c, text, room) {
  if (c.measureText(text).width <= room) return text;
  while (text.length > 1 && c.measureText(text + '…').width > room) text = text.slice(0, -1);
  return text + '…';
}
function show(event, text) {
  tip.style.display = text ? 'block' : 'none'; tip.textContent = text;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + 'px';
  tip.style.top = (event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 8 : event.clientY + 18) + 'px';
}

// Gantt chart: rows[r] is the first bar of row r; within a row, bars begin one after the other.
const R = D.names.length, rows = new Array(R + 1).fill(N), longest = new Array(R).fill(0);
for (let i = N - 1; i >= 0; i--) { rows[B.row[i]] = i; longest[B.row[i]] = Math.max(longest[B.row[i]], B.end[i] - B.start[i]); }
for (let r = R - 1; r >= 0; r--) rows[r] = Math.min(rows[r], rows[r + 1]);
const T = D.completion || 1, BOTTOM = 26, gantt = $('gantt');
let LEFT = 210;
const few = Math.max(1, Math.min(R, 26));
let view = { t0: 0, t1: T, r0: 0, rn: few };
let moment = null, marked = -1;   // time that the player shows, and the row of the link that is chosen there
for (const what of D.what) { const o = document.createElement('option'); o.value = o.textContent = what; $('colour').append(o); }
const tops = {}; for (const what of D.what) tops[what] = B[what].reduce((a, b) => Math.max(a, b), 0);
const colour = (i, what) => tops[what] < D.colours.length ? D.colours[B[what][i]] : shade(B[what][i] / tops[what]);
function firstBar(r, t) {   // first bar of the row that begins at t or later
  let low = rows[r], high = rows[r + 1];
  while (low < high) { const m = (low + high) >> 1; if (B.start[m] < t) low = m + 1; else high = m; }
  return low;
}
function bound() {
  const span = clamp(view.t1 - view.t0, T * 1e-7, T);
  view.t0 = clamp(view.t0, 0, T - span); view.t1 = view.t0 + span;
  view.rn = clamp(view.rn, Math.min(3, Math.max(1, R)), Math.max(1, R)); view.r0 = clamp(view.r0, 0, Math.max(0, R - view.rn));
}
function ticks(t0, t1, most) {
  const raw = (t1 - t0) / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find(m => power * m >= raw), found = [];
  for (let k = Math.ceil(t0 / step); k * step <= t1; k++) found.push(k * step);
  return found;
}
function drawGantt() {
  bound();
  LEFT = Math.min(210, gantt.getBoundingClientRect().width * 0.3);
  const [c, w, h] = fit(gantt), H = h - BOTTOM, tall = H / view.rn, what = $('colour').value;
  const X = t => LEFT + (t - view.t0) / (view.t1 - view.t0) * (w - LEFT);
  const unit = TIMES.find(u => view.t1 >= u[1]) || TIMES[3];
  c.fillStyle = '#555'; c.strokeStyle = '#ddd'; c.textAlign = 'center';
  for (const t of ticks(view.t0, view.t1, clamp((w - LEFT) / 80, 2, 6))) {
    c.beginPath(); c.moveTo(X(t), 0); c.lineTo(X(t), H); c.stroke();
    c.fillText(round(t / unit[1]) + ' ' + unit[0], clamp(X(t), LEFT + 20, w - 26), H + BOTTOM / 2);
  }
  c.save(); c.beginPath(); c.rect(LEFT, 0, w - LEFT, H); c.clip();
  if (marked >= 0) { c.fillStyle = '#fff1c9'; c.fillRect(LEFT, (marked - view.r0) * tall, w - LEFT, tall); }
  for (let r = Math.floor(view.r0); r < Math.min(R, view.r0 + view.rn + 1); r++) {
    const y = (r - view.r0) * tall, gap = Math.min(2, tall * 0.15);
    for (let i = firstBar(r, view.t0 - longest[r]), n = firstBar(r, view.t1); i < n; i++) {
      const a = X(B.start[i]), b = X(B.end[i]);
      if (b < LEFT) continue;
      c.fillStyle = colour(i, what);
      const lanes = D.lanes[r], high = (tall - 2 * gap) / lanes;
      c.fillRect(a, y + gap + B.lane[i] * high, Math.max(0.7, b - a - (b - a > 4 ? 0.7 : 0)), high - (high > 5 && lanes > 1 ? 0.7 : 0));
    }
  }
  for (const [t, style, dash] of [[D.bound, '#b23a00', [5, 4]], [moment, '#222', []]]) if (t !== null) {
    c.strokeStyle = style; c.setLineDash(dash); c.beginPath(); c.moveTo(X(t), 0); c.lineTo(X(t), H); c.stroke(); c.setLineDash([]);
  }
  c.restore();
  c.save(); c.beginPath(); c.rect(0, 0, LEFT, H); c.clip(); c.fillStyle = '#222'; c.textAlign = 'right';
  const every = Math.ceil(12 / tall);
  for (let r = Math.floor(view.r0); r < Math.min(R, view.r0 + view.rn + 1); r++)
    if (r % every === 0) c.fillText(cut(c, D.names[r], LEFT - 10), LEFT - 6, (r - view.r0 + 0.5) * tall);
  c.restore();
  c.strokeStyle = '#888'; c.strokeRect(LEFT, 0, w - LEFT, H);
}
function zoom(factor, at) {
  const t = view.t0 + at * (view.t1 - view.t0), span = clamp((view.t1 - view.t0) * factor, T * 1e-7, T);
  view.t0 = t - at * span; view.t1 = view.t0 + span; drawGantt();
}
function all() { view = { t0: 0, t1: T, r0: 0, rn: few }; drawGantt(); }
const place = event => {
  const box = gantt.getBoundingClientRect();
  const w = box.width - LEFT, h = box.height - BOTTOM;
  return { x: (event.clientX - box.left - LEFT) / w, y: (event.clientY - box.top) / h, w, h };
};
gantt.addEventListener('wheel', event => {
  event.preventDefault();
  const turn = event.deltaY || event.deltaX, factor = Math.exp(clamp(turn, -200, 200) / 400), p = place(event);
  if (!event.shiftKey) return zoom(factor, clamp(p.x, 0, 1));
  const row = view.r0 + p.y * view.rn, rn = clamp(view.rn * factor, Math.min(3, Math.max(1, R)), Math.max(1, R));
  view.r0 = row - p.y * rn; view.rn = rn; drawGantt();
}, { passive: false });
let held = null;
gantt.addEventListener('pointerdown', event => { held = { x: event.clientX, y: event.clientY, ...view }; gantt.setPointerCapture(event.pointerId); });
gantt.addEventListener('pointerup', () => { held = null; });
gantt.addEventListener('pointercancel', () => { held = null; });
gantt.addEventListener('pointermove', event => {
  const p = place(event);
  if (held) {
    const moved = (held.x - event.clientX) / p.w * (held.t1 - held.t0);
    view.t0 = held.t0 + moved; view.t1 = held.t1 + moved; view.r0 = held.r0 + (held.y - event.clientY) / p.h * held.rn;
    show(event, ''); return drawGantt();
  }
  const r = Math.floor(view.r0 + p.y * view.rn);
  if (r < 0 || r >= R || p.y > 1) return show(event, '');
  const lane = Math.floor((view.r0 + p.y * view.rn - r) * D.lanes[r]);
  const t = view.t0 + p.x * (view.t1 - view.t0), slack = 2 / p.w * (view.t1 - view.t0), hits = [];
  if (p.x >= 0) for (let i = firstBar(r, t - longest[r] - slack), n = firstBar(r, t + slack); i < n; i++)
    if (B.end[i] >= t - slack && B.lane[i] === lane) hits.push(i);
  const exact = hits.filter(i => B.start[i] <= t && t < B.end[i]);
  if (exact.length) hits.splice(0, hits.length, ...exact);
  const text = hits.slice(0, 3).map(bar);
  if (hits.length > 3) text.push('and ' + (hits.length - 3) + ' more');
  const busy = 'link ' + D.names[r] + ', busy ' + round(100 * D.links[r][2] / T) + ' %';
  show(event, [busy, ...text].join('\n\n'));
});
function bar(i) {
  const lines = B.count[i] > 1
    ? [B.count[i] + ' hops, the first: chunk ' + B.chunk[i], 'together    ' + size(B.bytes[i]), 'occupied    ' + time(B.busy[i])]
    : ['chunk       ' + B.chunk[i] + ' (' + size(B.bytes[i]) + ')'];
  if (B.step) lines.push('step        ' + B.step[i]);
  lines.push('send ' + B.send[i] + ' from ' + D.nodes[B.from[i]] + ' to ' + D.nodes[B.to[i]]);
  const ends = D.links[B.row[i]];
  lines.push('source      ' + D.nodes[ends[0]], 'target      ' + D.nodes[ends[1]]);
  return lines.concat('start       ' + time(B.start[i]), 'end         ' + time(B.end[i])).join('\n');
}
for (const canvas of document.querySelectorAll('canvas')) canvas.addEventListener('pointerleave', event => show(event, ''));
gantt.addEventListener('dblclick', all);
gantt.addEventListener('keydown', event => {
  const span = view.t1 - view.t0, move = { ArrowLeft: -0.1, ArrowRight: 0.1 }[event.key], rows = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (move) { view.t0 += move * span; view.t1 += move * span; } else if (rows) view.r0 += rows;
  else if (event.key === '+') return zoom(0.7, 0.5);
  else if (event.key === '-') return zoom(1 / 0.7, 0.5); else if (event.key === '0') return all(); else return;
  event.preventDefault(); drawGantt();
});
$('in').onclick = () => zoom(0.5, 0.5); $('out').onclick = () => zoom(2, 0.5); $('reset').onclick = all; $('colour').onchange = drawGantt;

// Heat maps: of bytes, and of the share of its time that a link is needed.
const heats = [...document.querySelectorAll('canvas.heat')], K = D.cells, MARGIN = 70, BAR = 90, cellAt = new Map();
K.bytes.forEach((_, i) => cellAt.set(K.source[i] * D.size + K.target[i], i));
const nodeName = k => {
  const a = D.nodes[D.order[k * D.block]], b = D.nodes[D.order[Math.min(D.order.length, (k + 1) * D.block) - 1]];
  return a === b ? a : a + ' … ' + b;
};
const percent = v => Number((100 * v).toPrecision(3)) + ' %';
const mostBytes = K.bytes.reduce((a, b) => Math.max(a, b), 0), unitBytes = SIZES.find(u => mostBytes >= u[1]) || SIZES[3];
const SCALES = {
  bytes: [mostBytes, v => Number((v / unitBytes[1]).toPrecision(4)) + ' ' + unitBytes[0]],
  used: [1, percent],
};
function drawHeat(heat) {
  const [c, w, h] = fit(heat), side = Math.min(w - MARGIN - BAR, h - MARGIN - 6), cell = side / Math.max(1, D.size);
  const [most, said] = SCALES[heat.dataset.of];
  K[heat.dataset.of].forEach((v, i) => {
    c.fillStyle = v ? shade(v / most) : '#ddd';
    const x = MARGIN + K.target[i] * cell, y = 6 + K.source[i] * cell, line = cell > 6 ? 0.6 : 0;
    c.fillRect(x, y, Math.max(0.8, cell - line), Math.max(0.8, cell - line));
  });
  c.strokeStyle = '#888'; c.strokeRect(MARGIN, 6, side, side); c.fillStyle = '#222';
  const every = Math.max(1, Math.ceil(14 / cell));
  for (let k = 0; k < D.size; k += every) {
    const at = (k + 0.5) * cell; c.textAlign = 'right';
    const label = cut(c, D.nodes[D.order[k * D.block]], MARGIN - 8); c.fillText(label, MARGIN - 4, 6 + at);
    c.save(); c.translate(MARGIN + at, 6 + side + 4); c.rotate(-Math.PI / 2); c.fillText(label, 0, 0); c.restore();
  }
  const x = MARGIN + side + 14;
  for (let y = 0; y < side; y++) { c.fillStyle = shade(1 - y / side); c.fillRect(x, 6 + y, 12, 1.5); }
  c.fillStyle = '#222'; c.textAlign = 'left';
  c.fillText(said(most), x + 16, 12); if (most) c.fillText(said(most / 2), x + 16, 6 + side / 2); c.fillText(said(0), x + 16, side);
  heat.side = side;
}
for (const heat of heats) heat.addEventListener('pointermove', event => {
  const box = heat.getBoundingClientRect(), k = v => Math.floor(v / heat.side * D.size);
  const t = k(event.clientX - box.left - MARGIN), s = k(event.clientY - box.top - 6);
  if (s < 0 || t < 0 || s >= D.size || t >= D.size) return show(event, '');
  const i = cellAt.get(s * D.size + t), what = i === undefined ? 'no link' : size(K.bytes[i]) + ', ' + percent(K.used[i]);
  show(event, nodeName(s) + ' → ' + nodeName(t) + '\n' + what);
});
const count = x => x.toLocaleString('en');
const told = 'completed after ' + time(D.completion) + ' (' + D.mode + '); ' + count(N) + ' bars on ' + count(R) + ' links' +
  (D.bound === null ? '' : '; proved lower bound (dashed) ' + time(D.bound));
$('summary').textContent = told;
const draw = () => { drawGantt(); heats.forEach(drawHeat); };
window.addEventListener('resize', draw); draw();
