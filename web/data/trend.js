// What the trend's points are to each other: where its line breaks, and what an index would have made of them.
import { isKnown } from './format.js';

/**
 * The points as they continue each other: where brokers or the number of holdings have changed, the next run begins.
 * Points of before say neither, so of these nothing is known to have changed.
 * @param {Drawn[]} points
 * @returns {number[][]} the places of each run
 */
export function runs(points) {
  /** @type {(a: unknown, b: unknown) => boolean} */
  const changed = (a, b) => a !== null && b !== null && String(a) !== String(b);
  /** @type {number[][]} */
  const out = [];
  points.forEach((p, at) => {
    const before = points[at - 1];
    if (!before || changed(before.brokers, p.brokers) || changed(before.holdings, p.holdings)) out.push([]);
    out[out.length - 1].push(at);
  });
  return out;
}

/** The last close by each point's date; undefined before the first. Both are in order. @param {{ date: string }[]} points @param {Close[]} candles */
export function closesAt(points, candles) {
  let next = 0;
  return points.map(({ date }) => {
    while (next < candles.length && candles[next].date <= date) next += 1;
    return candles[next - 1]?.close;
  });
}

/**
 * The value of each run's first point as if it had moved like an index since: for each point, with the index's last
 * close by its date. Nothing before the index's first close.
 * @param {Drawn[]} points
 * @param {Close[]} candles
 */
export function rebased(points, candles) {
  const starts = new Set(runs(points).map(([at]) => at));
  /** @type {{ value: number, close: number } | null} */
  let base = null;
  return closesAt(points, candles).map((close, at) => {
    const value = points[at].total_current_value;
    if (starts.has(at)) base = null;
    if (!close || !isKnown(value)) return null;
    base ??= { value, close };
    return (base.value / base.close) * close;
  });
}

/**
 * How the value and an index have changed since the last run began, each as a part of what it was. `null` where the run
 * is of one day, or the index has no closes by then.
 * @param {Drawn[]} points
 * @param {Close[]} candles
 */
export function changes(points, candles) {
  const all = runs(points);
  const run = all[all.length - 1];
  if (!run || run.length < 2) return null;
  const first = points[run[0]];
  const last = points[run[run.length - 1]];
  const [from, to] = closesAt([first, last], candles);
  const [was, is] = [first.total_current_value, last.total_current_value];
  if (!from || !to || !isKnown(was) || !isKnown(is) || was <= 0) return null;
  return { since: first.date, own: is / was - 1, index: to / from - 1 };
}
