// What all charts share: axes, lines, and one cursor for mouse, touch and keys. SVG, which a screen reader can name.
import { month } from '../data/axis-format.js';
import { isKnown, shortDay } from '../data/format.js';
import { h, put, s } from '../parts/view.js';

export const PAD = { left: 8, right: 72, top: 12, bottom: 26 };

/** @typedef {import('../data/format.js').Figure} Figure */
/** @typedef {ReturnType<typeof plane>} Plane */

/** Round figures for an axis: 1, 2 or 5 times a power of ten apart. @param {number} low @param {number} high @param {number} most */
export function ticks(low, high, most) {
  if (!(high > low)) return [low];
  const raw = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((times) => times * power).find((each) => each >= raw) ?? raw;
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high + step * 1e-9; at += 1) found.push(at * step);
  return found;
}

/** The span of the known values, widened where all are the same. @param {Figure[]} values */
export function extent(values) {
  const found = values.filter(isKnown);
  if (found.length === 0) return null;
  const [low, high] = [Math.min(...found), Math.max(...found)];
  const room = high > low ? (high - low) * 0.06 : Math.abs(high) * 0.02 || 1;
  return { low: low - room, high: high + room };
}

/** Draws again whenever the place has another width, so that letters keep their size on a phone. @param {Element} place @param {(width: number) => void} draw */
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

/**
 * Where points and values lie; `inset` is the room that a bar needs on each side of its point.
 * @param {{
 *   width: number,
 *   height: number,
 *   y: { low: number, high: number },
 *   points: number,
 *   inset?: number,
 *   pad?: typeof PAD,
 * }} room
 */
export function plane({ width, height, y, points, inset = 0, pad = PAD }) {
  const inner = width - pad.left - pad.right - 2 * inset;
  return {
    width,
    height,
    pad,
    /** A single point stands in the middle. */
    x: (/** @type {number} */ at) => pad.left + inset + (points > 1 ? (at / (points - 1)) * inner : inner / 2),
    y: (/** @type {number} */ value) =>
      pad.top + (1 - (value - y.low) / (y.high - y.low)) * (height - pad.top - pad.bottom),
    /** The point that is nearest to a place across. */
    at: (/** @type {number} */ x) =>
      Math.max(0, Math.min(points - 1, Math.round(((x - pad.left - inset) / inner) * (points - 1)))),
  };
}

/** @param {Plane} on @param {number[]} marks @param {(mark: number) => string} label */
export const grid = (on, marks, label) =>
  s(
    'g',
    { class: 'grid' },
    marks
      .map((mark) => [
        s('line', { x1: on.pad.left, x2: on.width - on.pad.right, y1: on.y(mark), y2: on.y(mark) }),
        s('text', { x: on.width - on.pad.right + 8, y: on.y(mark) + 4 }, label(mark)),
      ])
      .flat(),
  );

/** Dates from the first to the last, as many as have room; months with their year where there are many. @param {Plane} on @param {string[]} dates */
export function days(on, dates) {
  const last = dates.length - 1;
  const most = Math.max(2, Math.floor((on.width - on.pad.right) / 84));
  const wanted =
    last < 1
      ? [0]
      : Array.from({ length: Math.min(most, last + 1) }, (_, n, count = Math.min(most, last + 1)) =>
          Math.round((n * last) / (count - 1)),
        );
  const label = last > 200 ? month : shortDay;
  return s(
    'g',
    { class: 'days' },
    wanted.map((at) =>
      s(
        'text',
        {
          x: on.x(at),
          y: on.height - 6,
          'text-anchor': last < 1 ? 'middle' : at === 0 ? 'start' : at === last ? 'end' : 'middle',
        },
        label(dates[at]),
      ),
    ),
  );
}

/** @param {string} label @param {Plane} on @param {any[]} parts */
export const picture = (label, on, parts) =>
  s('svg', { viewBox: `0 0 ${on.width} ${on.height}`, role: 'img', 'aria-label': label, class: 'chart' }, parts);

/**
 * A line through the values; `begins` says where it begins anew.
 * @param {Figure[]} values
 * @param {{ x: (at: number) => number, y: (value: number) => number }} on
 * @param {(at: number) => boolean} begins
 */
export function path(values, on, begins = () => false) {
  let pen = 'M';
  let out = '';
  values.forEach((value, at) => {
    if (begins(at)) pen = 'M';
    // A gap is a gap: nothing is drawn through what is not known.
    if (!isKnown(value)) {
      pen = 'M';
      return;
    }
    out += `${pen}${on.x(at).toFixed(1)} ${on.y(value).toFixed(1)}`;
    pen = 'L';
  });
  return out;
}

/**
 * A chart that is explored: `draw` makes it for a width, as its picture and its plane; `told` says what is at a point.
 * Returns what ends it.
 * @param {HTMLElement} place
 * @param {{
 *   label: string,
 *   count: number,
 *   draw: (width: number) => { on: Plane, parts: any[], sentence: string },
 *   told: (at: number) => void,
 * }} what
 */
export function explore(place, { label, count, draw, told }) {
  let at = count - 1;
  /** @type {{ node: Element, on: Plane, cursor: Element } | null} */
  let drawn = null;
  const stage = h('div', { class: 'stage', tabindex: '0', role: 'group', 'aria-label': label });
  const point = (/** @type {number} */ next) => {
    at = Math.max(0, Math.min(count - 1, next));
    const x = String(drawn?.on.x(at) ?? 0);
    drawn?.cursor.setAttribute('x1', x);
    drawn?.cursor.setAttribute('x2', x);
    told(at);
  };
  const follow = (/** @type {PointerEvent} */ event) => {
    if (!drawn) return;
    const box = drawn.node.getBoundingClientRect();
    point(drawn.on.at(((event.clientX - box.left) / box.width) * drawn.on.width));
  };
  stage.addEventListener('pointermove', follow);
  stage.addEventListener('pointerdown', follow);
  stage.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    /** @type {{ [key: string]: number }} */
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: count - 1, PageUp: at - 20, PageDown: at + 20 };
    if (!(event.key in to)) return;
    event.preventDefault();
    point(to[event.key]);
  });
  put(place, stage);
  return fit(stage, (width) => {
    const { on, parts, sentence } = draw(width);
    const cursor = s('line', { class: 'cursor', y1: on.pad.top, y2: on.height - on.pad.bottom });
    const node = picture(sentence, on, [...parts, cursor]);
    drawn = { node, on, cursor };
    put(stage, node);
    point(at);
  });
}
