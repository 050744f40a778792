// What today's shares were worth on days before the first point: an estimate, drawn and named as one.
import { call, withQuery } from './api.js';
import { isKnown } from './format.js';
import { closesAt } from './trend.js';

export { estimate as words } from '../text/estimate.js';

/** Most symbols whose closes are read, the largest holdings first: each is a request. */
const SYMBOLS_MAX = 40;
/** Requests under way at once. */
const AT_ONCE = 4;
/** A line of less than this part of the value would say little of the whole. */
const PART_MIN = 0.5;

/** Today's holdings by symbol, with the closes that are stored of each: none where a split is suspected. */
export async function sharesWithCloses() {
  const { holdings } = await call('/api/portfolio/holdings');
  /** @type {Map<string, Share>} */
  const shares = new Map();
  for (const each of holdings) {
    // What no list of instruments names has no candles either.
    if (!isKnown(each.current_value) || each.unresolved) continue;
    const symbol = `${each.exchange}:${each.tradingsymbol}`;
    const share = shares.get(symbol) ?? { symbol, quantity: 0, value: 0, candles: [] };
    share.quantity += each.quantity;
    share.value += /** @type {number} */ (each.current_value);
    shares.set(symbol, share);
  }
  const found = [...shares.values()].toSorted((a, b) => b.value - a.value);
  const waiting = found.slice(0, SYMBOLS_MAX);
  const read = async () => {
    for (let share = waiting.shift(); share; share = waiting.shift()) {
      const query = withQuery('/api/market/candles', { symbol: share.symbol, days: 300 });
      const answer = await call(query).catch((problem) => {
        // Of some shares nothing is stored: the estimate does without them.
        if (problem.status !== 404 && problem.status !== 400) throw problem;
        return null;
      });
      if (answer && !answer.suspect) share.candles = answer.candles;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, read));
  return found;
}

/**
 * Points before `first` on `dates`: the value of the quantities of today at the closes of those days, brought to the
 * value of the first point, so that what has no closes is taken to have moved like the rest. `null` if the closes
 * of too small a part are known over all of these days.
 * @param {Share[]} shares
 * @param {string[]} dates
 * @param {Point} first
 */
export function estimated(shares, dates, first) {
  if (dates.length === 0 || !(first.total_current_value > 0)) return null;
  const known = shares.filter(({ candles }) => candles.length > 0 && candles[0].date <= dates[0]);
  const sum = (/** @type {Share[]} */ of) => of.reduce((all, { value }) => all + value, 0);
  const part = sum(known) / sum(shares);
  if (!(part >= PART_MIN)) return null;
  const days = [...dates, first.date].map((date) => ({ date }));
  const closes = known.map(({ candles }) => closesAt(days, candles));
  const values = days.map((_, at) => known.reduce((all, { quantity }, n) => all + quantity * closes[n][at], 0));
  const factor = first.total_current_value / values[dates.length];
  /** @type {EstimatedPoint[]} */
  const points = dates.map((date, at) => ({
    date,
    total_current_value: values[at] * factor,
    total_invested: null,
    total_pnl: null,
    brokers: null,
    holdings: null,
    source: 'estimate',
  }));
  return { points, part, shares: known.length, of: shares.length };
}
