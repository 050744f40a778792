// The candles of a symbol: ranges, a cursor, and the same as a table.
import { call, withQuery } from '../data/api.js';
import { UNKNOWN, count, day, price } from '../data/format.js';
import { figure, simulated } from '../parts/figures.js';
import { csvButton, table } from '../parts/table.js';
import { attr, button, h, memo, pieces, put, skeleton } from '../parts/view.js';
import { text } from '../text.js';
import { candles as t } from '../text/candles.js';
import { candles as chart } from './candle-chart.js';
import { explore } from './chart.js';

/** Trading days of each range; the last is all that is stored. @type {[string, number][]} */
const RANGES = [
  ['1M', 22],
  ['3M', 65],
  ['6M', 128],
  ['1Y', 250],
  ['max', 600],
];

const YEAR = 250;
const PRICES = /** @type {const} */ (['open', 'high', 'low', 'close']);

/** @typedef {Answer<'/api/market/candles'>} Candles */
/** @typedef {Candles['candles'][number]} Candle */
/** @typedef {ReturnType<typeof lay>} Nodes */
/** @typedef {{ days: number, answer: Candles | null, last: number | null }} State */

/**
 * `loaded` is told the candles of a year, newest last; the returned `last` draws the price of now.
 * @param {Element} into
 * @param {string} symbol
 * @param {(list: Candle[]) => void} loaded
 */
export function showCandles(into, symbol, loaded = () => {}) {
  /** @type {State} */
  const state = { days: 128, answer: null, last: null };
  let isOver = false;
  /** @type {(() => void) | void} */
  let end;
  const draw = () => {
    if (!state.answer) return;
    end?.();
    end = drawCandles(nodes, symbol, state, state.answer);
  };
  const load = async () => {
    try {
      state.answer = await call(withQuery('/api/market/candles', { symbol, days: RANGES[RANGES.length - 1][1] }));
      if (isOver) return;
      loaded(state.answer.candles.slice(-YEAR));
      draw();
    } catch (problem) {
      if (!isOver) drawProblem(nodes, problem, load);
    }
  };
  const choose = (/** @type {number} */ n) => {
    state.days = n;
    nodes.ranges.forEach((range, at) => attr(range, 'aria-pressed', String(RANGES[at][1] === n)));
    draw();
  };
  const nodes = lay(into, symbol, choose);
  choose(state.days);
  load();
  return {
    /** The price of now: its line moves with it, where it has moved enough to be seen. @param {number | null} now */
    last(now) {
      const before = state.last;
      if (now === null || now === before) return;
      if (before !== null && Math.abs(now - before) <= Math.abs(now) * 0.0005) return;
      state.last = now;
      // A cursor that somebody moves is not taken away.
      if (!nodes.picture.matches(':hover, :focus-within')) draw();
    },
    end: () => {
      isOver = true;
      end?.();
    },
  };
}

/** Lays out the chart. @param {Element} into @param {string} symbol @param {(days: number) => void} choose */
function lay(into, symbol, choose) {
  const picture = h('div', { class: 'picture' }, skeleton(7));
  const readout = h('p', { class: 'readout', role: 'status' }, '\u00a0');
  const marks = h('span', { class: 'marks' });
  const rows = table({
    name: 'candles',
    caption: t.caption(symbol),
    plain: true,
    key: (candle) => candle.date,
    sorted: '-date',
    columns: [
      { of: 'date', label: t.date, show: (c) => day(c.date) },
      ...PRICES.map((name) => figure(name, t[name], price, { sort: undefined })),
      figure(
        'volume',
        t.volume,
        (/** @type {number} */ value) => (value ? count(value) : { text: UNKNOWN, why: t.untraded }),
        { rank: 2 },
      ),
    ],
  });
  const asTable = h(
    'details',
    { hidden: true },
    h('summary', null, t.asTable),
    csvButton(rows.filed, `${symbol.replace(':', '-')}.csv`),
    rows.node,
  );
  const ranges = RANGES.map(([label, n]) => button(label, () => choose(n), { 'aria-pressed': 'false' }));
  put(
    into,
    h(
      'div',
      { class: 'title-row' },
      h('h2', null, t.title, ' ', marks),
      h('div', { class: 'tabs small no-print', role: 'group', 'aria-label': t.range }, ranges),
    ),
    readout,
    picture,
    asTable,
  );
  return { picture, readout, marks, rows, asTable, ranges };
}

/**
 * Draws the chart and its table; returns what ends the chart.
 * @param {Nodes} nodes
 * @param {string} symbol
 * @param {State} state
 * @param {Candles} answer
 */
function drawCandles({ picture, readout, marks, rows, asTable }, symbol, { days, last }, answer) {
  const list = answer.candles.slice(-days);
  const { simulated: isSimulated, suspect } = answer;
  memo(marks, [isSimulated, suspect], () =>
    put(
      marks,
      simulated(isSimulated),
      suspect && pieces([{ text: t.suspect, kind: 'mark delayed', why: t.suspectWhy }]),
    ),
  );
  asTable.hidden = list.length === 0;
  if (list.length === 0) {
    put(picture, h('p', { class: 'empty' }, t.none));
    return undefined;
  }
  rows.update(list);
  const newest = list[list.length - 1];
  const sentence = t.sentence(symbol, count(list.length), day(list[0].date), day(newest.date), price(newest.close));
  return explore(picture, {
    label: t.keys,
    count: list.length,
    told: (at) => drawReadout(readout, list[at]),
    draw: (width) => ({ ...chart(list, { last, width }), sentence }),
  });
}

/** What a candle says. @param {Element} readout @param {Candle} c */
function drawReadout(readout, c) {
  const words = t.readout(day(c.date), price(c.open), price(c.high), price(c.low), price(c.close));
  // An index has no volume.
  if (c.volume) words.push(t.readVolume(count(c.volume)));
  put(
    readout,
    words.map((its) => h('span', null, its, ' ')),
  );
}

/** @param {Nodes} nodes @param {any} problem @param {() => void} again */
function drawProblem({ picture }, problem, again) {
  const isMissing = problem.code === 'candles_not_found';
  put(
    picture,
    h(
      'p',
      { class: 'empty' },
      isMissing ? t.notStored : problem.message,
      ' ',
      !isMissing && button(text.app.again, again, { class: 'link' }),
    ),
  );
}
