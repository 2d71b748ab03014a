'use strict';
// The figures come finished from the server (see package view); this file only
// draws them. Names may come from a hostile peer: they are cleaned, and enter the
// page as text, never as markup.

const maxPoints = 300;
const points = [];  // what the charts show, the oldest first
let started = '';   // the life of the server that they are of
let frame = null;   // the last one
let picked = null;  // the point under the pointer; null: the last
let timer = 0;
let asking = false;

// Figures.

function number(n) {
  if (n === 0) return '0';
  if (n < 10) return n < 0.05 ? '<0.1' : n.toFixed(1).replace(/\.0$/, '');
  if (n < 1e4) return Math.round(n).toString();
  return n < 1e6 ? scaled(n / 1e3) + ' k' : scaled(n / 1e6) + ' M';
}

function scaled(n) { return n < 99.95 ? n.toFixed(1) : Math.round(n).toString(); }

function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let u = 0;
  for (; n >= 1024 && u < units.length - 1; u++) n /= 1024;
  return (u === 0 ? Math.round(n).toString() : scaled(n)) + ' ' + units[u];
}

function rate(n) { return bytes(n) + '/s'; }

function time(s) {
  if (s === 0) return '–';
  if (s < 1e-3) return scaled(s * 1e6) + ' µs';
  return s < 1 ? scaled(s * 1e3) + ' ms' : scaled(s) + ' s';
}

function span(s) {
  const parts = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const [n, unit] = parts.find(([n]) => s >= n) || parts[3];
  return Math.floor(s / n) + ' ' + unit;
}

// clean shows what cannot be seen, or changes the direction of writing.
function clean(name) {
  return String(name).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, c => '\\u{' + c.codePointAt(0).toString(16) + '}');
}

// Elements.

function element(name, attributes, ...content) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
  e.append(...content);
  return e;
}

function shape(parent, name, attributes, text) {
  const e = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  parent.append(e);
}

function byID(id) { return document.getElementById(id); }

// Charts. A chart has lines, each a name and its value at a point, or is a stack
// of whatever the points name.

const charts = [
  {id: 'rates', title: 'Operations a second', unit: number, stack: p => p.rates},
  {id: 'latency', title: 'Latency', unit: time, log: true, lines: [['p50', p => p.p50], ['p99', p => p.p99]]},
  {id: 'threads', title: 'Threads and the way to the disk', unit: number,
    lines: [['threads', p => p.threads], ['calls at the disk', p => p.inside], ['calls that wait', p => p.waiting]]},
  {id: 'bytes', title: 'Bytes a second', unit: rate, binary: true, lines: [['sent', p => p.out], ['received', p => p.in]]},
  {id: 'clients', title: 'Clients', unit: number, lines: [['clients', p => p.clients], ['connections', p => p.connections]]},
  {id: 'localio', title: 'LOCALIO: files lent a second', unit: number, lines: [['files', p => p.localio]], only: f => f.localio},
];

const left = 68, right = 6, high = 8, low = 20, height = 170;
const stacked = 6;           // names in a stack; the others are one
const colours = new Map();   // of a stack's names, so that they keep theirs

// stackLines picks the names of a stack that have most.
function stackLines(of) {
  const sums = new Map();
  for (const p of points) for (const [name, v] of Object.entries(of(p))) sums.set(name, (sums.get(name) || 0) + v);
  const top = [...sums.keys()].sort((a, b) => sums.get(b) - sums.get(a)).slice(0, stacked);
  for (const name of [...colours.keys()]) if (!top.includes(name)) colours.delete(name);
  for (const name of top) {
    if (colours.has(name)) continue;
    const taken = new Set(colours.values());
    let c = 0;
    while (taken.has(c)) c++;
    colours.set(name, c);
  }
  const value = (p, name) => Object.hasOwn(of(p), name) ? of(p)[name] : 0;
  const lines = top.map(name => ({name, colour: colours.get(name), at: p => value(p, name)}));
  if (sums.size > top.length) {
    const rest = [...sums.keys()].filter(name => !top.includes(name));
    lines.push({name: 'others', colour: stacked, at: p => rest.reduce((n, name) => n + value(p, name), 0)});
  }
  return lines;
}

// nice is the next round number above n.
function nice(n, base) {
  let unit = 1;
  while (n / unit > base) unit *= base;
  const steps = base === 1024 ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1024] : [1, 2, 5, 10];
  return unit * (steps.find(s => s * unit >= n) || base);
}

// scale maps values to pixels, and says where the grid's lines are.
function scale(chart, values) {
  const room = height - high - low;
  if (chart.log) {
    const real = values.filter(v => v > 0);
    const bottom = Math.floor(Math.log10(Math.min(...real, 1e-3)));
    const top = Math.max(Math.ceil(Math.log10(Math.max(...real, 1e-3))), bottom + 1);
    const marks = [];
    for (let d = bottom; d <= top; d++) marks.push(10 ** d);
    return {marks, y: v => high + room * (top - Math.log10(v)) / (top - bottom)};
  }
  const max = nice(Math.max(1, ...values), chart.binary ? 1024 : 10);
  return {marks: [0, max / 2, max], y: v => high + room * (1 - v / max)};
}

// track is the path along x and y; where y is null it is interrupted.
function track(xs, ys) {
  let d = '', pen = 'M';
  xs.forEach((x, i) => {
    if (ys[i] === null) { pen = 'M'; return; }
    d += pen + x.toFixed(1) + ' ' + ys[i].toFixed(1);
    pen = 'L';
  });
  return d;
}

function draw(chart) {
  const figure = byID('chart-' + chart.id);
  figure.hidden = Boolean(chart.only && !chart.only(frame));
  if (figure.hidden) return;
  const svg = figure.querySelector('svg'), width = Math.max(svg.clientWidth, 200);
  svg.replaceChildren();
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  const lines = chart.stack ? stackLines(chart.stack) : chart.lines.map(([name, at], colour) => ({name, colour, at}));
  key(figure.querySelector('.key'), chart, lines);
  if (points.length === 0) return;

  const times = points.map(p => Date.parse(p.at) / 1e3), last = times[times.length - 1];
  const past = Math.max(60, last - times[0]);
  const xs = times.map(t => width - right - (width - left - right) * (last - t) / past);
  const sum = p => lines.reduce((n, l) => n + l.at(p), 0);
  const s = scale(chart, chart.stack ? points.map(sum) : lines.flatMap(l => points.map(l.at)));
  for (const v of s.marks) {
    shape(svg, 'line', {class: 'grid', x1: left, x2: width - right, y1: s.y(v), y2: s.y(v)});
    shape(svg, 'text', {x: left - 5, y: s.y(v) + 4, 'text-anchor': 'end'}, v === 0 ? '0' : chart.unit(v));
  }
  shape(svg, 'text', {x: left, y: height - 5}, span(past) + ' ago');
  shape(svg, 'text', {x: width - right, y: height - 5, 'text-anchor': 'end'}, 'now');
  let floor = points.map(() => 0);
  for (const l of lines) {
    if (chart.stack) {
      const top = points.map((p, i) => floor[i] + l.at(p));
      const d = track(xs, top.map(s.y)) + track(xs.toReversed(), floor.toReversed().map(s.y)).replace('M', 'L') + 'Z';
      shape(svg, 'path', {class: 'area s' + l.colour, d});
      floor = top;
    } else {
      const ys = points.map(p => chart.log && l.at(p) <= 0 ? null : s.y(l.at(p)));
      shape(svg, 'path', {class: 'curve s' + l.colour, d: track(xs, ys)});
    }
  }
  const at = points.indexOf(picked);
  if (at >= 0) shape(svg, 'line', {class: 'pick', x1: xs[at], x2: xs[at], y1: high, y2: height - low});
  svg.onpointermove = e => {
    const x = e.clientX - svg.getBoundingClientRect().left;
    pick(points[xs.reduce((best, v, i) => Math.abs(v - x) < Math.abs(xs[best] - x) ? i : best, 0)]);
  };
  svg.onpointerleave = () => pick(null);
}

// key names the lines, with their values at the point that is picked.
function key(list, chart, lines) {
  const p = picked || points[points.length - 1];
  const items = lines.map(l => element('li', {class: 's' + l.colour}, clean(l.name) + ' ' + (p ? chart.unit(l.at(p)) : '–')));
  if (picked) items.unshift(element('li', {class: 'at'}, new Date(picked.at).toLocaleTimeString()));
  list.replaceChildren(...items);
}

function pick(p) {
  if (p === picked) return;
  picked = p;
  charts.forEach(draw);
}

// Tables. A column is a heading, what a row has there, a class, and by what rows are
// sorted where the heading is pressed: numbers the largest first, text as in a
// dictionary. What a row has is text, or an element made here.

const name = 'name', wide = 'wide';
const moved = r => r.bytes_in_per_second + r.bytes_out_per_second;
const tables = [
  {id: 'clients', title: 'Clients', rows: f => f.clients || [], by: 2, columns: [
    ['client', r => r.client, name, r => r.client], ['user', r => r.user, name + ' ' + wide, r => r.user],
    ['ops/s', r => number(r.calls_per_second), '', r => r.calls_per_second], ['bytes/s', r => rate(moved(r)), '', moved],
    ['p99', r => time(r.p99), '', r => r.p99], ['in flight', r => number(r.in_flight), '', r => r.in_flight],
    ['last file', r => r.last_file, 'path ' + wide, r => r.last_file]]},
  {id: 'files', title: 'Files', rows: f => f.files || [], by: 1, columns: [
    ['file', r => r.file, 'path', r => r.file], ['ops/s', r => number(r.calls_per_second), '', r => r.calls_per_second],
    ['bytes/s', r => rate(moved(r)), '', moved], ['p99', r => time(r.p99), '', r => r.p99], ['last client', r => r.last_client, name + ' ' + wide, r => r.last_client]]},
  {id: 'slow', title: 'Slow operations', rows: f => f.slow, by: 3, columns: [
    ['procedure', r => r.procedure, name, r => r.procedure], ['file', r => r.path || r.detail, 'path', r => r.path || r.detail],
    ['client', r => r.client, name + ' ' + wide, r => r.client], ['took', r => time(r.took), '', r => r.took], ['waited', r => time(r.waited), wide, r => r.waited],
    ['at', r => new Date(r.at).toLocaleTimeString(), wide, r => Date.parse(r.at)], ['xid', r => r.xid ? r.xid.toString(16) : '', wide]]},
  {id: 'procedures', title: 'Procedures', rows: f => f.procedures, columns: [
    ['procedure', r => `${r.program} ${r.name}`, name, r => `${r.program} ${r.name}`], ['ops/s', r => number(r.calls_per_second), '', r => r.calls_per_second],
    ['errors/s', r => number(r.errors_per_second), wide, r => r.errors_per_second], ['p50', r => time(r.p50), '', r => r.p50],
    ['p99', r => time(r.p99), '', r => r.p99], ['max', r => time(r.max), wide, r => r.max],
    ['received', r => rate(r.bytes_in_per_second), wide, r => r.bytes_in_per_second], ['sent', r => rate(r.bytes_out_per_second), wide, r => r.bytes_out_per_second],
    ['total', r => number(r.calls), '', r => r.calls]]},
  {id: 'lanes', title: 'Lanes to the disk', rows: f => f.gate.lanes, columns: [
    ['export', r => r.export, name], ['lane', r => r.name, name], ['inside', r => number(r.inside)], ['waiting', r => number(r.waiting)],
    ['entered/s', r => number(r.entered_per_second), wide], ['had to wait/s', r => number(r.waits_per_second), wide],
    ['for', r => time(r.wait), wide], ['refused/s', r => number(r.refused_per_second)]]},
  {id: 'limits', title: 'Limits', rows: f => f.limits, columns: [
    ['limit', r => r.name, name], ['used', r => amount(r, r.used)], ['of', r => r.max ? amount(r, r.max) : 'any'], ['', meter]]},
  {id: 'localio', title: 'LOCALIO', rows: f => f.localio ? [f.localio] : [], columns: [
    ['sessions', r => number(r.sessions)], ['files lent', r => number(r.files)], ['lent/s', r => number(r.opened_per_second)],
    ['in all', r => number(r.opened)], ['refused', r => number(r.refused)], ['revoked', r => number(r.revoked)]]},
  {id: 'caches', title: 'Caches', rows: f => f.caches, columns: [
    ['cache', r => r.name, name], ['hits/s', r => number(r.hits_per_second)], ['misses/s', r => number(r.misses_per_second)],
    ['used', r => amount(r, r.used)], ['of', r => r.max ? amount(r, r.max) : 'any', wide], ['', meter, wide]]},
  {id: 'jobs', title: 'Jobs', rows: f => f.jobs, columns: [
    ['job', r => r.name, name], ['state', r => r.state, name], ['items', r => number(r.items)], ['of', r => r.total ? number(r.total) : '?'],
    ['data', r => bytes(r.bytes), wide], ['failed', r => number(r.failed)]]},
];

function amount(row, n) { return row.bytes ? bytes(n) : number(n); }

function meter(row) {
  return row.max ? element('meter', {min: 0, max: row.max, value: row.used, high: row.max * 0.9, 'aria-label': clean(row.name)}) : '';
}

const few = 12; // rows of a table, until all are asked for

// sorted is a table's rows in the order that was asked for: by the column table.by, the other
// way round if table.back. Rows that are alike keep the server's order.
function sorted(table) {
  const rows = table.rows(frame);
  if (table.by === undefined) return rows;
  const key = table.columns[table.by][3], way = table.back ? -1 : 1;
  return [...rows].sort((a, b) => {
    const x = key(a), y = key(b);
    return way * (typeof x === 'string' ? x.localeCompare(y) : y - x);
  });
}

// press sorts by a column, or the other way round if that is so already.
function press(table, column) {
  table.back = table.by === column && !table.back;
  table.by = column;
  if (frame) fill(table);
}

// heading is the head of a column: a button if rows can be sorted by it.
function heading(table, [label, , kind, key], column) {
  const th = element('th', {scope: 'col'}, label);
  if (kind) th.className = kind;
  if (key) {
    const button = element('button', {type: 'button'}, label);
    button.onclick = () => press(table, column);
    th.replaceChildren(button);
  }
  return th;
}

function fill(table) {
  const box = byID('table-' + table.id), all = sorted(table), rows = table.whole ? all : all.slice(0, few);
  box.hidden = all.length === 0;
  box.querySelectorAll('th').forEach((th, i) => {
    if (i === table.by) th.setAttribute('aria-sort', (typeof table.columns[i][3](all[0] || {}) === 'string') === !table.back ? 'ascending' : 'descending');
    else th.removeAttribute('aria-sort');
  });
  const more = box.querySelector('.more');
  more.hidden = all.length <= few;
  more.textContent = table.whole ? `the first ${few}` : `all ${all.length}`;
  const cell = (row, [, value, kind]) => {
    const v = value(row);
    return element('td', kind ? {class: kind} : {}, typeof v === 'string' ? clean(v) : v);
  };
  box.querySelector('tbody').replaceChildren(...rows.map(row => element('tr', {}, ...table.columns.map(c => cell(row, c)))));
}

// The head of the page.

const tiles = [
  ['ops', 'operations/s', f => number(f.total.calls_per_second)], ['p50', 'p50', f => time(f.total.p50)], ['p99', 'p99', f => time(f.total.p99)],
  ['out', 'sent', f => rate(f.total.bytes_out_per_second)], ['in', 'received', f => rate(f.total.bytes_in_per_second)],
  ['errors', 'errors/s', f => number(f.total.errors_per_second)],
  ['clients', 'clients', f => number(f.connections.clients)], ['connections', 'connections', f => number(f.connections.open)],
  ['threads', 'threads', f => f.process.threads ? number(f.process.threads) : '–'],
  ['cpu', 'processors', f => f.process.cpu.toFixed(2)], ['memory', 'memory', f => f.process.memory ? bytes(f.process.memory) : '–'],
  ['gate', 'disk threads', f => `${f.gate.inside} of ${f.gate.bound || 'any'}`],
];

function head() {
  const up = (Date.parse(frame.at) - Date.parse(frame.started)) / 1e3;
  const gate = frame.gate.reason ? `disk by ${frame.gate.kind}: ${frame.gate.reason}` : '';
  const parts = [frame.url, frame.version, 'up ' + span(Math.max(up, 0)), gate];
  byID('server').textContent = clean(parts.filter(Boolean).join(' · '));
  for (const [id, , value] of tiles) byID('tile-' + id).textContent = value(frame);
}

function say(state, text) {
  document.documentElement.dataset.state = state;
  byID('state').textContent = text;
}

// The feed.

function take(f) {
  if (f.format !== 1) throw new Error('the server has changed: reload this page');
  const again = started !== '' && f.started !== started;
  if (f.started !== started) points.length = 0;
  started = f.started;
  if (again) return next(0); // for all points of its new life
  frame = f;
  points.push(...f.points);
  points.splice(0, Math.max(points.length - maxPoints, 0));
  if (!points.includes(picked)) picked = null;
  head();
  charts.forEach(draw);
  tables.forEach(fill);
  say(f.healthy ? 'live' : 'ill', f.healthy ? 'in service' : clean(f.health));
  next(f.every * 1e3);
}

async function ask() {
  if (asking || document.hidden) return; // visibilitychange will ask
  asking = true;
  try {
    const last = points.length ? points[points.length - 1].seq : 0;
    const r = await fetch('view.json?after=' + last, {cache: 'no-store', signal: AbortSignal.timeout(10000)});
    if (!r.ok) throw new Error(`the server says ${r.status}`);
    take(await r.json());
  } catch (e) {
    const since = frame ? ', figures are of ' + new Date(frame.at).toLocaleTimeString() : '';
    say('lost', `no answer (${clean(e.message)})${since}`);
    next(5000);
  } finally {
    asking = false;
  }
}

function next(ms) {
  clearTimeout(timer);
  timer = setTimeout(ask, ms);
}

function build() {
  byID('tiles').append(...tiles.map(([id, label]) =>
    element('div', {}, element('dt', {}, label), element('dd', {id: 'tile-' + id}, '–'))));
  for (const c of charts) {
    const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    svg.setAttribute('role', 'img');
    svg.setAttribute('aria-label', c.title);
    byID('charts').append(element('figure', {id: 'chart-' + c.id}, element('h2', {}, c.title), svg, element('ul', {class: 'key'})));
  }
  for (const t of tables) {
    const heads = t.columns.map((c, i) => heading(t, c, i));
    const more = element('button', {type: 'button', class: 'more', hidden: ''});
    more.onclick = () => { t.whole = !t.whole; fill(t); };
    byID('tables').append(element('div', {id: 'table-' + t.id, class: 'table', hidden: ''}, element('h2', {}, t.title),
      element('table', {}, element('thead', {}, element('tr', {}, ...heads)), element('tbody')), more));
  }
  new ResizeObserver(() => { if (frame) charts.forEach(draw); }).observe(byID('charts'));
  document.addEventListener('visibilitychange', () => { if (!document.hidden) next(0); });
  ask();
}

build();
