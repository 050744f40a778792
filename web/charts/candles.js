// The candles of a symbol: ranges, a cursor, and the same as a table.
import { call, withQuery } from '../data/api.js';
import { called, count, day, isoDay, price, quantity } from '../data/format.js';
import * as live from '../data/live.js';
import { awaited, soonMs } from '../parts/awaited.js';
import { secret, simulated } from '../parts/figures.js';
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
/** A day's candle comes in the evening. */
const EVERY_MS = 600_000;

/** @typedef {Answer<'/api/market/candles'>} Candles */
/** @typedef {Candles['candles'][number]} Candle */
/** @typedef {ReturnType<typeof lay>} Nodes */
/** @typedef {ReturnType<typeof import('../parts/candle-table.js').candleTable>} CandleTable */
/** One's own trade, by its day. @typedef {{ date: string, side: string, quantity: number | null }} Own */
/**
 * The session that still runs, by its quote; its first price is not known of every source.
 * @typedef {{ open: number | null, volume: null, change: number | null, isRunning: boolean }} Unfinished
 * @typedef {Pick<Candle, 'date' | 'high' | 'low' | 'close'> & Unfinished} Running
 */
/** @typedef {{ days: number, answer: Candles | null, quote: any, table: CandleTable | null, own: Own[] }} State */

/**
 * `loaded` is told the candles of a year, newest last, and `unknown` that no list has the symbol; the returned `now`
 * draws the price of now, and its session as the last candle.
 * @param {Element} into
 * @param {string} symbol
 * @param {{ loaded: (list: Candle[]) => void, unknown: () => void }} told
 */
export function showCandles(into, symbol, { loaded, unknown }) {
  /** @type {State} */
  const state = { days: 128, answer: null, quote: null, table: null, own: [] };
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
      const answer = await call(withQuery('/api/market/candles', { symbol, days: RANGES[RANGES.length - 1][1] }));
      if (isOver) return undefined;
      const isNew = JSON.stringify(answer) !== JSON.stringify(state.answer);
      state.answer = answer;
      loaded(answer.candles.slice(-YEAR));
      if (isNew) draw();
      return soonMs(answer);
    } catch (problem) {
      if (isOver || state.answer) return undefined;
      if (problem.code === 'candles_not_found') {
        unknown();
        put(nodes.picture, h('p', { class: 'empty' }, t.notListed));
        return undefined;
      }
      put(nodes.picture, h('p', { class: 'empty' }, problem.message, ' ', text.retried));
      throw problem;
    }
  };
  const choose = (/** @type {number} */ n) => {
    state.days = n;
    nodes.ranges.forEach((range, at) => attr(range, 'aria-pressed', String(RANGES[at][1] === n)));
    draw();
  };
  const openTable = async () => {
    if (!nodes.asTable.open || state.table) return;
    const { candleTable } = await import('../parts/candle-table.js');
    if (state.table || !state.answer) return;
    state.table = candleTable(symbol);
    nodes.asTable.append(...state.table.nodes);
    state.table.update(state.answer.candles.slice(-state.days));
  };
  const nodes = lay(into, choose, openTable);
  choose(state.days);
  const fetched = live.repeat(load, EVERY_MS);
  return {
    /** The price of now: its line and its candle move with it, where that can be seen. @param {any} quote */
    now(quote) {
      if (quote === null || !hasMoved(state.quote, quote)) return;
      state.quote = quote;
      // A cursor that somebody moves is not taken away.
      if (!nodes.picture.matches(':hover, :focus-within')) draw();
    },
    /** One's own trades, which the chart marks. @param {Own[]} own */
    marks(own) {
      if (JSON.stringify(own) === JSON.stringify(state.own)) return;
      state.own = own;
      draw();
    },
    end: () => {
      isOver = true;
      fetched.stop();
      end?.();
    },
  };
}

/** Whether a figure of the session moved by more than a twentieth of a percent, which is about a pixel. @param {any} before @param {any} now */
const hasMoved = (before, now) =>
  !before ||
  ['last_price', 'day_low', 'day_high', 'day_open'].some((name) => {
    const [was, is] = [before[name] ?? 0, now[name] ?? 0];
    return Math.abs(is - was) > Math.abs(is) * 0.0005;
  });

/** The session of the quote as a candle, if it is later than those that are stored. @param {any} quote @param {Candle[]} list @returns {Running | null} */
export function runningOf(quote, list) {
  if (!quote || quote.day_low == null || quote.day_high == null || list.length === 0) return null;
  const date = isoDay(Date.parse(quote.as_of));
  if (date <= list[list.length - 1].date) return null;
  const { day_open: open = null, day_high: high, day_low: low, last_price: close, change } = quote;
  return { date, open, high, low, close, volume: null, change, isRunning: true };
}

/** Lays out the chart. @param {Element} into @param {(days: number) => void} choose @param {() => void} openTable */
function lay(into, choose, openTable) {
  const picture = h('div', { class: 'picture' }, skeleton(7));
  const readout = h('p', { class: 'readout', role: 'status' }, '\u00a0');
  const marks = h('span', { class: 'marks' });
  const asTable = h('details', { hidden: true, ontoggle: openTable }, h('summary', null, t.asTable));
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
  return { picture, readout, marks, asTable, ranges };
}

/**
 * Draws the chart and its table; returns what ends the chart.
 * @param {Nodes} nodes
 * @param {string} symbol
 * @param {State} state
 * @param {Candles} answer
 */
function drawCandles({ picture, readout, marks, asTable }, symbol, { days, quote, table, own }, answer) {
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
  const waits = awaited(answer, 'candles', t.notStored);
  if (waits) {
    put(picture, waits, answer.state === 'loading' && skeleton(5));
    return undefined;
  }
  table?.update(list);
  const newest = list[list.length - 1];
  const last = quote?.last_price ?? null;
  const running = runningOf(quote, list);
  const drawn = running ? [...list, running] : list;
  const stored = t.sentence(called(symbol), count(list.length), day(list[0].date), day(newest.date), price(newest.close));
  const sentence = running ? `${stored}; ${t.running}: ${price(running.low)} – ${price(running.high)}` : stored;
  return explore(picture, {
    label: t.keys,
    count: drawn.length,
    told: (at) => drawReadout(readout, drawn[at], own),
    draw: (width) => ({ ...chart(drawn, { last, width, own }), sentence }),
  });
}

/** What a candle says. @param {Element} readout @param {Candle | Running} c @param {Own[]} own */
function drawReadout(readout, c, own) {
  const isRunning = 'isRunning' in c;
  const words = t.readout(day(c.date), c.open === null ? '–' : price(c.open), price(c.high), price(c.low));
  if (isRunning) words[0] = `${words[0]}, ${t.running}`;
  words.push((isRunning ? t.readLast : t.readClose)(price(c.close)));
  // An index has no volume.
  if (c.volume) words.push(t.readVolume(count(c.volume)));
  for (const { side, quantity: n } of own.filter(({ date }) => date === c.date)) words.push(t.own(side, secret(quantity)(n)));
  put(
    readout,
    words.map((its) => h('span', null, its, ' ')),
  );
}
