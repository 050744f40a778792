// Charts as SVG: the trend, candles, and the reliability plot. Each says in a sentence what it shows.
import { compactRupees, count, isKnown, price, share, shortDay, wilson } from './format.js';
import { text } from './text.js';
import { h, s } from './view.js';

const t = text.chart;
const PAD = { left: 8, right: 72, top: 12, bottom: 26 };

/** Round figures for an axis: 1, 2 or 5 times a power of ten apart. */
export function ticks(low, high, most) {
  if (!(high > low)) return [low];
  const raw = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((times) => times * power).find((each) => each >= raw) ?? raw;
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high + step * 1e-9; at += 1) found.push(at * step);
  return found;
}

/** The span of the known values, widened where all are the same. */
export function extent(values) {
  const found = values.filter(isKnown);
  if (found.length === 0) return null;
  const [low, high] = [Math.min(...found), Math.max(...found)];
  const room = high > low ? (high - low) * 0.06 : Math.abs(high) * 0.02 || 1;
  return { low: low - room, high: high + room };
}

/** Draws again whenever the place has another width, so that letters keep their size on a phone. */
export function fit(place, draw) {
  let width = 0;
  const look = () => {
    const now = Math.max(280, Math.round(place.clientWidth));
    if (now !== width) draw((width = now));
  };
  const watch = new ResizeObserver(look);
  watch.observe(place);
  look();
  return () => watch.disconnect();
}

function plane(width, height, y, points) {
  const inner = width - PAD.left - PAD.right;
  return {
    width,
    height,
    /** A single point stands in the middle. */
    x: (at) => PAD.left + (points > 1 ? (at / (points - 1)) * inner : inner / 2),
    y: (value) => PAD.top + (1 - (value - y.low) / (y.high - y.low)) * (height - PAD.top - PAD.bottom),
  };
}

const grid = (on, marks, label) => s('g', { class: 'grid' }, marks.map((mark) => [
  s('line', { x1: PAD.left, x2: on.width - PAD.right, y1: on.y(mark), y2: on.y(mark) }),
  s('text', { x: on.width - PAD.right + 8, y: on.y(mark) + 4 }, label(mark)),
]).flat());

function days(on, dates) {
  const every = Math.max(1, Math.ceil(dates.length / Math.max(2, Math.floor(on.width / 130))));
  const shown = dates.map((date, at) => ({ date, at })).filter(({ at }) => at % every === 0 && (at === 0 || on.x(at) < on.width - PAD.right - 30));
  return s('g', { class: 'days' }, shown.map(({ date, at }) =>
    s('text', { x: on.x(at), y: on.height - 6, 'text-anchor': at === 0 && dates.length > 1 ? 'start' : 'middle' }, shortDay(date))));
}

const picture = (label, on, parts) =>
  s('svg', { viewBox: `0 0 ${on.width} ${on.height}`, role: 'img', 'aria-label': label, class: 'chart' }, parts);

export function path(values, on, begins = (_at) => false) {
  let pen = 'M';
  let out = '';
  values.forEach((value, at) => {
    if (begins(at)) pen = 'M';
    // A gap is a gap: nothing is drawn through what is not known.
    if (!isKnown(value)) { pen = 'M'; return; }
    out += `${pen}${on.x(at).toFixed(1)} ${on.y(value).toFixed(1)}`;
    pen = 'L';
  });
  return out;
}

/**
 * The points as they continue each other: where brokers or the number of holdings have changed, the next run begins.
 * Points of before say neither, so of these nothing is known to have changed.
 */
export function runs(points) {
  const changed = (a, b) => a !== null && b !== null && String(a) !== String(b);
  const out = [];
  points.forEach((p, at) => {
    const before = points[at - 1];
    if (!before || changed(before.brokers, p.brokers) || changed(before.holdings, p.holdings)) out.push([]);
    out[out.length - 1].push(at);
  });
  return out;
}

/** Value and cost of a portfolio, a point a day. */
export function trend(points, sentence, hidden, width) {
  const height = 300;
  const [value, cost] = [points.map((p) => p.total_current_value), points.map((p) => p.total_invested)];
  const range = extent([...value, ...cost]);
  if (!range) return h('p', { class: 'empty' }, t.nothing);
  const on = plane(width, height, range, points.length);
  const parts = runs(points);
  const begins = (at) => parts.some((run) => run[0] === at);
  const alone = new Set(parts.filter((run) => run.length === 1).flat());
  const edge = (values, run) => run.map((at) => `${on.x(at).toFixed(1)} ${on.y(values[at]).toFixed(1)}`).join('L');
  const area = parts.map((run) => `M${edge(value, run)}L${edge(cost, run.toReversed())}Z`).join('');
  const dots = points.map((p, at) => {
    const kind = ['dot', p.source === 'sync' ? 'sync' : 'close', (p.carried || p.left_out || p.discrepancies) && 'hollow', p.suspect && 'suspect'].filter(Boolean).join(' ');
    const r = p.source === 'sync' ? 4 : 2;
    const isDrawn = points.length <= 120 || p.source === 'sync' || p.suspect || alone.has(at);
    return s('circle', { class: kind, cx: on.x(at), cy: on.y(value[at]), r: isDrawn ? r : 0 },
      s('title', null, t.point(p, hidden)));
  });
  return picture(sentence, on, [
    grid(on, ticks(range.low, range.high, 5), hidden ? () => '•••' : compactRupees), days(on, points.map((p) => p.date)),
    s('path', { class: 'area', d: area }),
    s('path', { class: 'line cost', d: path(cost, on, begins) }), s('path', { class: 'line value', d: path(value, on, begins) }),
    s('g', null, dots),
  ]);
}

/** Daily candles with a cursor. */
export function candles(list, sentence, width) {
  const height = 320;
  const range = extent(list.flatMap(({ high, low }) => [high, low]));
  if (!range) return null;
  const on = plane(width, height, range, list.length);
  const body = Math.max(1, Math.min(12, ((width - PAD.left - PAD.right) / list.length) * 0.66));
  const bars = list.map((candle, at) => {
    const [top, bottom] = [on.y(Math.max(candle.open, candle.close)), on.y(Math.min(candle.open, candle.close))];
    return s('g', { class: candle.close >= candle.open ? 'up' : 'down' },
      s('line', { x1: on.x(at), x2: on.x(at), y1: on.y(candle.high), y2: on.y(candle.low) }),
      s('rect', { x: on.x(at) - body / 2, y: top, width: body, height: Math.max(1, bottom - top) }));
  });
  const cursor = s('line', { class: 'cursor', y1: PAD.top, y2: height - PAD.bottom });
  const node = picture(sentence, on, [
    grid(on, ticks(range.low, range.high, 6), price), days(on, list.map(({ date }) => date)), s('g', { class: 'bars' }, bars), cursor,
  ]);
  return {
    node,
    point(at) { cursor.setAttribute('x1', String(on.x(at))); cursor.setAttribute('x2', String(on.x(at))); },
    /** The candle under the pointer. */
    at(event) {
      const box = node.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * width;
      const share = (x - PAD.left) / (width - PAD.left - PAD.right);
      return Math.max(0, Math.min(list.length - 1, Math.round(share * (list.length - 1))));
    },
  };
}

const FEW = 30;

/** What was said against what happened; on the dashed line the two agree. */
export function reliability(bins, width) {
  const filled = bins.filter((bin) => bin.judged > 0);
  // The few of a thin group reach far up and down: they are cut off rather than squeeze the rest.
  const across = extent(filled.map((bin) => bin.mean_confidence));
  const upward = extent(filled.flatMap((bin) => {
    const { low, high } = wilson(bin.hits, bin.judged);
    return bin.judged < FEW ? [bin.hit_rate, bin.mean_confidence] : [low, high, bin.mean_confidence];
  }));
  if (!across || !upward) return h('p', { class: 'empty' }, t.nothing);
  const [left, right, top, bottom, height] = [58, 16, 12, 52, 340];
  const scale = (value, of) => (value - of.low) / (of.high - of.low);
  const x = (value) => left + scale(value, across) * (width - left - right);
  const y = (value) => top + (1 - scale(Math.min(upward.high, Math.max(upward.low, value)), upward)) * (height - top - bottom);
  const most = Math.max(...filled.map((bin) => bin.judged));
  let labelled = -Infinity;
  const points = filled.map((bin) => {
    const { low, high } = wilson(bin.hits, bin.judged);
    const at = x(bin.mean_confidence);
    const hasRoom = at - labelled > 40;
    if (hasRoom) labelled = at;
    return s('g', { class: bin.judged < FEW ? 'few' : null },
      s('line', { class: 'whisker', x1: at, x2: at, y1: y(low), y2: y(high) }),
      s('circle', { cx: at, cy: y(bin.hit_rate), r: 3 + 9 * Math.sqrt(bin.judged / most) }, s('title', null, t.bin(share(bin.mean_confidence), share(bin.hit_rate), count(bin.judged)))),
      hasRoom && s('text', { x: at, y: height - bottom + 18, class: 'count' }, `n ${count(bin.judged)}`));
  });
  const [from, to] = [Math.max(across.low, upward.low), Math.min(across.high, upward.high)];
  const axes = [
    ticks(across.low, across.high, Math.max(2, Math.floor(width / 110))).map((mark) => s('text', { x: x(mark), y: height - 8, 'text-anchor': 'middle' }, share(mark))),
    ticks(upward.low, upward.high, 5).flatMap((mark) => [
      s('text', { x: left - 8, y: y(mark) + 4, 'text-anchor': 'end' }, share(mark)), s('line', { x1: left, x2: width - right, y1: y(mark), y2: y(mark) })]),
  ].flat();
  return s('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': t.reliability(filled.length), class: 'chart' },
    s('g', { class: 'grid' }, axes), s('line', { class: 'diagonal', x1: x(from), y1: y(from), x2: x(to), y2: y(to) }), points);
}
