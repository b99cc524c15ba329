// Player: the network at a moment of the schedule, and what a click on it has chosen.
const V = D.player;
let drawn = [];   // ranks, links and chunks where they stand, for clicks
if (V) {
  const net = $('net'), about = $('about'), count = V.names.length, ink = '#222', dark = '#b23a00';
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
  // Ranks by their number, as in other drawings, where they are drawn one by one.
  let ranks = 0;
  const numbers = V.square.map(other => other || count !== D.nodes.length ? null : ranks++);
  // A pair whose straight line would pass over another node bends as little as it must. The control point is for the
  // ends in pixels, where y goes down.
  const flat = V.at.map(p => [p[0], -p[1]]), out = [...flat], bends = new Map(), pairOf = (a, b) => Math.min(a, b) * count + Math.max(a, b);
  const bow = (a, b, k) => [(a[0] + b[0]) / 2 + k * (b[1] - a[1]), (a[1] + b[1]) / 2 - k * (b[0] - a[0])];
  const point = (at, t) => [0, 1].map(k => (1 - t) ** 2 * at[k] + 2 * t * (1 - t) * at[4 + k] + t * t * at[2 + k]);
  function room(a, b, k) {   // the least distance of another node from the curve
    const at = [...flat[a], ...flat[b], ...bow(flat[a], flat[b], k)];
    let least = Infinity;
    for (let n = 1; n < 16; n++) {
      const [x, y] = point(at, n / 16);
      flat.forEach((p, u) => { if (u !== a && u !== b) least = Math.min(least, Math.hypot(p[0] - x, p[1] - y)); });
    }
    return least;
  }
  if (V.pairs.length * count <= 200000)
    for (const [a, b] of V.pairs) {
      const tried = [0, -0.12, 0.12, -0.18, 0.18, -0.25, 0.25].map(k => [k, room(a, b, k)]);
      const [bend] = tried.find(([, free]) => free > 0.36) || tried.reduce((best, one) => one[1] > best[1] ? one : best);
      if (!bend) continue;
      bends.set(pairOf(a, b), bend);
      out.push(point([...flat[a], ...flat[b], ...bow(flat[a], flat[b], bend)], 0.5));
    }
  const low = [0, 1].map(k => out.reduce((least, p) => Math.min(least, p[k]), Infinity));
  const high = [0, 1].map(k => out.reduce((most, p) => Math.max(most, p[k]), -Infinity));
  const span = [0, 1].map(k => Math.max(high[k] - low[k], 0.8));
  moment = 0;

  function place(w, h) {
    const margin = 30, scale = Math.min((w - 2 * margin) / span[0], (h - 2 * margin) / span[1]);
    radius = clamp(0.3 * scale, 2, 13);
    return flat.map(p => [
      w / 2 + (p[0] - (low[0] + high[0]) / 2) * scale,
      h / 2 + (p[1] - (low[1] + high[1]) / 2) * scale,
    ]);
  }
  function lane(spots, r) {   // a link is drawn to the right of the line between its ends
    const [u, v] = ends[r], a = spots[u], b = spots[v], dx = b[0] - a[0], dy = b[1] - a[1], far = Math.hypot(dx, dy) || 1;
    const x = -dy / far * radius * 0.35, y = dx / far * radius * 0.35;
    const [p, q] = bow(a, b, (u < v ? 1 : -1) * (bends.get(pairOf(u, v)) || 0));
    const off = [a, b].map(end => {   // from the edge of a node, towards the control point
      const away = Math.hypot(p - end[0], q - end[1]) || 1, cut = Math.min(0.6 * away, radius) / away;
      return [end[0] + (p - end[0]) * cut + x, end[1] + (q - end[1]) * cut + y];
    });
    return [...off[0], ...off[1], p + x, q + y];
  }
  function line(c, at, style, width, dash = []) {
    c.strokeStyle = style; c.lineWidth = width; c.setLineDash(dash);
    c.beginPath(); c.moveTo(at[0], at[1]); c.quadraticCurveTo(at[4], at[5], at[2], at[3]); c.stroke(); c.setLineDash([]);
  }
  function drawNet() {
    const [c, w, h] = fit(net), spots = place(w, h), active = [], wide = clamp(0.3 * radius, 0.9, 3.5);
    drawn = [];
    for (const [a, b] of V.pairs)
      line(c, [...spots[a], ...spots[b], ...bow(spots[a], spots[b], bends.get(pairOf(a, b)) || 0)], '#e4e4e4', 1);
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
    c.fillStyle = ink; c.textAlign = 'center'; c.strokeStyle = '#fff'; c.lineWidth = 3; c.lineJoin = 'round';
    const fonts = [c.font, c.font.replace('11px', '8px')], inside = radius >= 9, every = Math.ceil(count / Math.max(1, Math.floor(w * h / 1800)));
    for (let u = 0; u < count; u += every) {
      const short = numbers[u] === null ? V.names[u].split('.').pop() : String(numbers[u]);
      c.font = fonts[0];
      if (numbers[u] !== null && c.measureText(short).width >= 2 * radius - 2) c.font = fonts[1];
      const fits = c.measureText(short).width < 2 * radius - 2, text = fits ? short : cut(c, short, inside ? 4 * radius : 60);
      if (numbers[u] !== null && !fits) continue;   // numbers stand in their rank or nowhere
      const y = spots[u][1] + (fits ? 0 : radius + 7);
      if (!fits) c.strokeText(text, spots[u][0], y);   // no line runs through a name
      c.fillText(text, spots[u][0], y);
    }
    const what = $('colour').value, size = clamp(radius * 0.45, 2, 5);
    for (const [i, at] of active) {
      const f = clamp((moment - B.start[i]) / (B.end[i] - B.start[i] || 1), 0, 1);
      const [x, y] = point(at, f);
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
      return [V.names[u] + ([null, Number(V.names[u])].includes(numbers[u]) ? '' : ', rank ' + numbers[u]), ...some('arrived:', reach[u].slice(0, here).reverse()), ...some('still to come:', reach[u].slice(here)),
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
      for (let n = 0; n < 16; n++) {   // the nearest point of the curve's sixteen chords
        const [a, b] = point(d.at, n / 16), [p, q] = point(d.at, (n + 1) / 16);
        const f = clamp(((x - a) * (p - a) + (y - b) * (q - b)) / ((p - a) ** 2 + (q - b) ** 2 || 1), 0, 1);
        const far = Math.hypot(a + f * (p - a) - x, b + f * (q - b) - y);
        if (far < least) { least = far; best = { link: d.link }; }
      }
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
