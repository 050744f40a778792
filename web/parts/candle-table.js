// Daily candles as a table. It comes when it is opened.
import { UNKNOWN, called, count, day, price } from '../data/format.js';
import { candles as t } from '../text/candles.js';
import { figure } from './figures.js';
import { csvButton, table } from './table.js';

/** @typedef {Answer<'/api/market/candles'>['candles'][number]} Candle */

const PRICES = /** @type {const} */ (['open', 'high', 'low', 'close']);

/** @param {string} symbol */
export function candleTable(symbol) {
  /** @type {ReturnType<typeof table<Candle>>} */
  const rows = table({
    name: 'candles',
    caption: t.caption(called(symbol)),
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
  return { nodes: [csvButton(rows.filed, `${symbol.replace(':', '-')}.csv`), rows.node], update: rows.update };
}
