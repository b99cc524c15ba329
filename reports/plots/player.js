// Player: the network at a moment of the schedule, and what a click on it has chosen.
const V = D.player;
let drawn = [];   // ranks, links and chunks where they stand, for clicks
if (V) {
  const net = $('net'), about = $('about'), count = V.names.length, ink = '#222', dark = '#b23a00';
  const low = [0, 1].map(k => Math.min(...V.at.map(p => p[k]))), high = [0, 1].map(k => Math.max(...V.at.map(p => p[k])));
  const span = [0, 1].map(k => Math.max(high[k] - low[k], 0.8));
  const ends = D.links.map(link => [V.unit[link[0]], V.unit[link[1]]]);
  const busiest = D.links.reduce((best, link, r) => link[2] > D.links[best][2] ? r : best, 0);
  const longestBusy = D.links.length ? D.links[busiest][2] : 1;
  // Bars by unit: those that reach it by their end, those that leave it by their start, and those of a chunk.
  const reach = V.names.map(() => []), leave = V.names.map(() => []), chunks = new Map();
  for (let i = 0; i < N; i++) {
    const [a, b] = ends[B.row[i]];
    if (a !== b) { reach[b].push(i); leave[a].push(i); }
    if (!chunks.has(B.chunk[i])) chunks.set(B.chunk[i], []);
    chunks.get(B.chunk[i]).push(i);
  }
  for (const list of reach) list.sort((i, j) => B.end[i] - B.end[j]);
  for (const list of [...leave, ...chunks.values()]) list.sort((i, j) => B.start[i] - B.start[j]);
  const starts = Float64Array.from(new Set(B.start)).sort();
  // Sums of times in floating point: what ends at a moment has arrived at it.
  const near = T * 1e-9, arrived = i => B.end[i] <= moment + near;
  const passed = list => {   // bars of a list by their end that have arrived
    let a = 0, b = list.length;
    while (a < b) { const m = (a + b) >> 1; if (arrived(list[m])) a = m + 1; else b = m; }
    return a;
  };
  let frame = 0, then = 0, chosen = null, radius = 8;
  moment = 0;

  function place(w, h) {
    const margin = 26, scale = Math.min((w - 2 * margin) / span[0], (h - 2 * margin) / span[1]);
    radius = clamp(0.3 * scale, 2, 13);
    return V.at.map(p => [
      w / 2 + (p[0] - (low[0] + high[0]) / 2) * scale,
      h / 2 - (p[1] - (low[1] + high[1]) / 2) * scale,
    ]);
  }
  function lane(spots, r) {   // a link is drawn to the right of the straight line between its ends
    const [a, b] = ends[r].map(u => spots[u]), dx = b[0] - a[0], dy = b[1] - a[1], far = Math.hypot(dx, dy) || 1;
    const x = -dy / far * radius * 0.35, y = dx / far * radius * 0.35, cut = Math.min(0.3, radius / far);
    return [a[0] + dx * cut + x, a[1] + dy * cut + y, b[0] - dx * cut + x, b[1] - dy * cut + y];
  }
  function line(c, at, style, width, dash = []) {
    c.strokeStyle = style; c.lineWidth = width; c.setLineDash(dash);
    c.beginPath(); c.moveTo(at[0], at[1]); c.lineTo(at[2], at[3]); c.stroke(); c.setLineDash([]);
  }
  function drawNet() {
    const [c, w, h] = fit(net), spots = place(w, h), active = [], wide = clamp(0.3 * radius, 0.9, 3.5);
    drawn = [];
    for (const [a, b] of V.pairs) line(c, [...spots[a], ...spots[b]], '#e4e4e4', 1);
    for (let r = 0; r < R; r++) {
      if (ends[r][0] === ends[r][1]) continue;
      const at = lane(spots, r), now = [];
      for (let i = firstBar(r, moment - longest[r]), n = firstBar(r, moment + near); i < n; i++)
        if (B.start[i] <= moment && !arrived(i)) now.push(i);
      if (r === busiest) line(c, at, dark, 2 * wide + 1);
      line(c, at, shade(D.links[r][2] / longestBusy), now.length ? wide : wide / 3);
      if (chosen && chosen.link === r) line(c, at, ink, 4);
      drawn.push({ link: r, at });
      for (const i of now) active.push([i, at]);
    }
    if (chosen && chosen.chunk !== undefined)
      for (const i of chunks.get(chosen.chunk)) line(c, lane(spots, B.row[i]), ink, 3, B.start[i] <= moment ? [] : [4, 4]);
    for (let u = 0; u < count; u++) {
      const [x, y] = spots[u], all = reach[u].length, share = all ? passed(reach[u]) / all : 0;
      c.fillStyle = '#fff'; c.strokeStyle = chosen && chosen.unit === u ? dark : '#555';
      c.lineWidth = chosen && chosen.unit === u ? 2.5 : 1; c.beginPath();
      if (V.square[u]) c.rect(x - radius * 0.8, y - radius * 0.8, radius * 1.6, radius * 1.6); else c.arc(x, y, radius, 0, 2 * Math.PI);
      c.fill(); c.stroke();
      if (share && !V.square[u]) {   // how much of what it will receive has arrived
        c.fillStyle = '#9fc5e8'; c.beginPath(); c.moveTo(x, y);
        c.arc(x, y, radius - 1, -Math.PI / 2, (2 * share - 0.5) * Math.PI); c.fill();
      }
    }
    c.fillStyle = ink; c.textAlign = 'center';
    const inside = radius >= 9, every = Math.ceil(count / Math.max(1, Math.floor(w * h / 1800)));
    for (let u = 0; u < count; u += every) {
      const short = V.names[u].split('.').pop();
      c.fillText(cut(c, short, inside ? 4 * radius : 60), spots[u][0], spots[u][1] + (c.measureText(short).width < 2 * radius - 2 ? 0 : radius + 7));
    }
    const what = $('colour').value, size = clamp(radius * 0.45, 2, 5);
    for (const [i, at] of active) {
      const f = clamp((moment - B.start[i]) / (B.end[i] - B.start[i] || 1), 0, 1);
      const x = at[0] + f * (at[2] - at[0]), y = at[1] + f * (at[3] - at[1]);
      c.fillStyle = colour(i, what); c.strokeStyle = '#fff'; c.lineWidth = 1;
      c.beginPath(); c.arc(x, y, size, 0, 2 * Math.PI); c.fill(); c.stroke();
      drawn.push({ bar: i, x, y });
    }
    spots.forEach((p, unit) => drawn.push({ unit, x: p[0], y: p[1] }));
    $('clock').textContent = time(moment) + ' of ' + time(T);
    $('when').value = String(Math.round(1000 * moment / T));
    about.textContent = describe();
  }
  const hop = i => 'chunk ' + B.chunk[i] + (B.count[i] > 1 ? ' and ' + (B.count[i] - 1) + ' more' : '') + ', ' +
    V.names[ends[B.row[i]][0]] + ' → ' + V.names[ends[B.row[i]][1]] + ', ' + time(B.start[i]) + ' to ' + time(B.end[i]);
  const some = (title, list) => list.length
    ? [title + ' ' + list.length, ...list.slice(0, 6).map(i => '  ' + hop(i)), ...(list.length > 6 ? ['  …'] : [])] : [title + ' none'];
  function describe() {
    if (!chosen) return 'Click on a rank, a link or a moving chunk. Space plays, the arrow keys step.';
    if (chosen.unit !== undefined) {
      const u = chosen.unit, here = passed(reach[u]), out = leave[u];
      return [V.names[u], ...some('arrived:', reach[u].slice(0, here).reverse()), ...some('still to come:', reach[u].slice(here)),
        ...some('sends now:', out.filter(i => B.start[i] <= moment && !arrived(i))),
        ...some('sends later:', out.filter(i => B.start[i] > moment))].join('\n');
    }
    if (chosen.chunk !== undefined) return ['chunk ' + chosen.chunk, ...some('hops:', chunks.get(chosen.chunk))].join('\n');
    const r = chosen.link, list = [];
    for (let i = rows[r]; i < rows[r + 1]; i++) list.push(i);
    return ['link ' + D.names[r] + ', busy ' + round(100 * D.links[r][2] / T) + ' %' + (r === busiest ? ', the busiest' : ''),
      ...some('still to come:', list.filter(i => B.start[i] > moment))].join('\n');
  }
  function goTo(t) { moment = clamp(t, 0, T); drawNet(); drawGantt(); }
  function step(way) {
    const next = way > 0 ? starts.find(t => t > moment + near) : starts.findLast(t => t < moment - near);
    pause(); goTo(next === undefined ? (way > 0 ? T : 0) : next);
  }
  function tick(stamp) {
    goTo(moment + (stamp - then) / 1000 * T / 12 * Number($('speed').value)); then = stamp;
    if (moment < T) frame = requestAnimationFrame(tick); else pause();
  }
  function pause() { cancelAnimationFrame(frame); frame = 0; $('play').textContent = 'play'; }
  function play() {
    if (frame) return pause();
    if (moment >= T) moment = 0;
    $('play').textContent = 'pause'; then = performance.now(); frame = requestAnimationFrame(tick);
  }
  function hit(event) {
    const box = net.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const away = d => Math.hypot(d.x - x, d.y - y), bars = drawn.filter(d => d.bar !== undefined && away(d) < 8);
    if (bars.length) return { chunk: B.chunk[bars.sort((d, e) => away(d) - away(e))[0].bar] };
    const nodes = drawn.filter(d => d.unit !== undefined && away(d) < radius + 3);
    if (nodes.length) return { unit: nodes.sort((d, e) => away(d) - away(e))[0].unit };
    let best = null, least = 6;
    for (const d of drawn) if (d.link !== undefined) {
      const [a, b, p, q] = d.at, f = clamp(((x - a) * (p - a) + (y - b) * (q - b)) / ((p - a) ** 2 + (q - b) ** 2 || 1), 0, 1);
      const far = Math.hypot(a + f * (p - a) - x, b + f * (q - b) - y);
      if (far < least) { least = far; best = { link: d.link }; }
    }
    return best;
  }
  net.addEventListener('click', event => {
    chosen = hit(event);
    marked = chosen && chosen.link !== undefined ? chosen.link : -1;
    if (marked >= 0) view.r0 = marked + 0.5 - view.rn / 2;
    goTo(moment);
  });
  net.addEventListener('keydown', event => {
    const action = { ' ': play, ArrowLeft: () => step(-1), ArrowRight: () => step(1), Home: () => goTo(0), End: () => goTo(T) }[event.key];
    if (action) { event.preventDefault(); action(); }
  });
  $('play').onclick = play; $('back').onclick = () => step(-1); $('forward').onclick = () => step(1);
  $('when').oninput = () => { pause(); goTo(Number($('when').value) / 1000 * T); };
  $('colour').addEventListener('change', drawNet);
  window.addEventListener('resize', drawNet); goTo(T * (Number(location.hash.slice(1)) || 0));
} else $('player').remove();
