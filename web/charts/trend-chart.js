// The trend of a portfolio as a chart: its profit, or its value beside what it cost.
import { axisRupees } from '../data/axis-format.js';
import { isKnown } from '../data/format.js';
import { runs } from '../data/trend.js';
import { s, uid } from '../parts/view.js';
import { days, extent, grid, path, plane, ticks } from './chart.js';

/** @typedef {import('./chart.js').Plane} Plane */
/** @typedef {import('../data/format.js').Figure} Figure */

/**
 * The parts of the picture for a width; `against` is the benchmark's line.
 * @param {Drawn[]} points
 * @param {{ view: 'pnl' | 'value', against: (number | null)[], hidden: boolean, width: number }} how
 */
export function trend(points, { view, against: index, hidden, width }) {
  const height = width < 500 ? 280 : 340;
  const shown = points.map((p) => (view === 'pnl' ? p.total_pnl : p.total_current_value));
  // What it cost is far from what the days before were worth: beside an estimate it would flatten the line.
  const isEstimated = points.some((p) => p.source === 'estimate');
  const against = points.map((p) => (view === 'pnl' ? 0 : isEstimated ? null : p.total_invested));
  const range = extent([...shown, ...against, ...index]) ?? { low: 0, high: 1 };
  const on = plane({ width, height, y: range, points: points.length });
  // Points before this one are an estimate, which leads up to it.
  const real = Math.max(
    0,
    points.findIndex((p) => p.source !== 'estimate'),
  );
  const parts = runs(points);
  const begins = (/** @type {number} */ at) => parts.some((run) => run[0] === at);
  const alone = new Set(parts.filter((run) => run.length === 1).flat());
  /** @type {(values: Figure[], run: number[]) => string} */
  const edge = (values, run) => run.map((at) => `${on.x(at).toFixed(1)} ${on.y(values[at] ?? 0).toFixed(1)}`).join('L');
  const areas = parts.map((run) => run.filter((at) => at >= real));
  const area = areas.map((run) => `M${edge(shown, run)}L${edge(against, run.toReversed())}Z`).join('');
  const breaks = parts.slice(1).map(([at]) => {
    const x = (on.x(at - 1) + on.x(at)) / 2;
    return s('line', { class: 'break', x1: x, x2: x, y1: on.pad.top, y2: height - on.pad.bottom });
  });
  const dots = points.map((p, at) => {
    if (at < real) return null;
    const isDrawn = points.length <= 120 || p.source === 'sync' || p.suspect || alone.has(at);
    if (!isDrawn) return null;
    const kind = [
      'dot',
      p.source === 'sync' ? 'sync' : 'close',
      (p.carried || p.left_out || p.discrepancies) && 'hollow',
      p.suspect && 'suspect',
    ]
      .filter(Boolean)
      .join(' ');
    return s('circle', { class: kind, cx: on.x(at), cy: on.y(shown[at] ?? 0), r: p.source === 'sync' ? 4 : 2 });
  });
  return {
    on,
    parts: [
      s('g', null, suspectBands(points, on)),
      grid(on, ticks(range.low, range.high, 5), hidden ? () => '•••' : axisRupees),
      days(
        on,
        points.map((p) => p.date),
      ),
      ...(view === 'pnl'
        ? signedArea(area, on)
        : isEstimated
          ? []
          : [s('path', { class: 'area', d: area }), s('path', { class: 'line cost', d: path(against, on, begins) })]),
      index.some(isKnown) && s('path', { class: 'line index', d: path(index, on, begins) }),
      real > 0 && s('path', { class: 'line estimate', d: path(shown.slice(0, real + 1), on) }),
      s('path', {
        class: 'line value',
        d: path(
          shown.map((value, at) => (at < real ? null : value)),
          on,
          begins,
        ),
      }),
      s('g', null, breaks),
      s('g', null, dots),
    ],
  };
}

/** Behind days in doubt. @param {Drawn[]} points @param {Plane} on */
function suspectBands(points, on) {
  const half = points.length > 1 ? Math.max(3, (on.x(1) - on.x(0)) / 2) : 6;
  return points.map(
    (p, at) =>
      p.suspect &&
      s('rect', {
        class: 'suspect-band',
        x: on.x(at) - half,
        y: on.pad.top,
        width: 2 * half,
        height: on.height - on.pad.top - on.pad.bottom,
      }),
  );
}

/** Above nought it is gain, below it loss. @param {string} d @param {Plane} on */
function signedArea(d, on) {
  const zero = Math.max(0, Math.min(on.height, on.y(0)));
  return ['gain', 'loss']
    .map((kind, at) => {
      const id = uid('clip');
      return s(
        'g',
        null,
        s(
          'clipPath',
          { id },
          s('rect', { x: 0, y: at ? zero : 0, width: on.width, height: at ? on.height - zero : zero }),
        ),
        s('path', { class: `area ${kind}`, d, 'clip-path': `url(#${id})` }),
      );
    })
    .concat(s('line', { class: 'zero', x1: on.pad.left, x2: on.width - on.pad.right, y1: on.y(0), y2: on.y(0) }));
}
