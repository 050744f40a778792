// The reliability plot of the signals: the confidence that was said against what happened.
import { count } from '../data/format.js';
import { share } from '../data/ratio-format.js';
import { h, put, s } from '../parts/view.js';
import { chart as t } from '../text/chart.js';
import { extent, fit, ticks } from './chart.js';

const FEW = 30;

/** Where the plot stands, with its words. */
export const place = () => h('figure', null, h('div', { class: 'plot' }), h('figcaption', null, t.reliabilityWords));

/** Draws the plot in its place below `into` for each width; returns what ends it. */
export function follow(into, bins) {
  const plot = into.querySelector('.plot');
  return fit(plot, (width) => put(plot, reliability(bins, width)));
}

/** What was said against what happened; on the dashed line the two agree. */
function reliability(bins, width) {
  const filled = bins.filter((bin) => bin.judged > 0);
  // The few of a thin group reach far up and down: they are cut off rather than squeeze the rest.
  const across = extent(filled.map((bin) => bin.mean_confidence));
  const upward = extent(
    filled.flatMap((bin) => {
      const { low, high } = wilson(bin.hits, bin.judged);
      return bin.judged < FEW ? [bin.hit_rate, bin.mean_confidence] : [low, high, bin.mean_confidence];
    }),
  );
  if (!across || !upward) return h('p', { class: 'empty' }, t.nothing);
  const [left, right, top, bottom, height] = [58, 16, 12, 52, 340];
  const scale = (value, of) => (value - of.low) / (of.high - of.low);
  const x = (value) => left + scale(value, across) * (width - left - right);
  const y = (value) =>
    top + (1 - scale(Math.min(upward.high, Math.max(upward.low, value)), upward)) * (height - top - bottom);
  const most = Math.max(...filled.map((bin) => bin.judged));
  let labelled = -Infinity;
  const points = filled.map((bin) => {
    const { low, high } = wilson(bin.hits, bin.judged);
    const at = x(bin.mean_confidence);
    const hasRoom = at - labelled > 40;
    if (hasRoom) labelled = at;
    return s(
      'g',
      { class: bin.judged < FEW ? 'few' : null },
      s('line', { class: 'whisker', x1: at, x2: at, y1: y(low), y2: y(high) }),
      s(
        'circle',
        { cx: at, cy: y(bin.hit_rate), r: 3 + 9 * Math.sqrt(bin.judged / most) },
        s('title', null, t.bin(share(bin.mean_confidence), share(bin.hit_rate), count(bin.judged))),
      ),
      hasRoom && s('text', { x: at, y: height - bottom + 18, class: 'count' }, `n ${count(bin.judged)}`),
    );
  });
  const [from, to] = [Math.max(across.low, upward.low), Math.min(across.high, upward.high)];
  const axes = [
    ticks(across.low, across.high, Math.max(2, Math.floor(width / 110))).map((mark) =>
      s('text', { x: x(mark), y: height - 8, 'text-anchor': 'middle' }, share(mark)),
    ),
    ticks(upward.low, upward.high, 5).flatMap((mark) => [
      s('text', { x: left - 8, y: y(mark) + 4, 'text-anchor': 'end' }, share(mark)),
      s('line', { x1: left, x2: width - right, y1: y(mark), y2: y(mark) }),
    ]),
  ].flat();
  return s(
    'svg',
    { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': t.reliability(filled.length), class: 'chart' },
    s('g', { class: 'grid' }, axes),
    s('line', { class: 'diagonal', x1: x(from), y1: y(from), x2: x(to), y2: y(to) }),
    points,
  );
}

/** The 95 % Wilson interval of a share of hits. */
export function wilson(hits, judged) {
  const z = 1.959964;
  const p = hits / judged;
  const scale = 1 + (z * z) / judged;
  const middle = (p + (z * z) / (2 * judged)) / scale;
  const half = (z * Math.sqrt((p * (1 - p)) / judged + (z * z) / (4 * judged * judged))) / scale;
  return { low: Math.max(0, middle - half), high: Math.min(1, middle + half) };
}
