// A short list of shares with their price and change of the day: those that moved most, and those of a sector.
import { percent, price } from '../data/format.js';
import { text } from '../text.js';
import { market as t } from '../text/market.js';
import { ageMark, change } from './figures.js';
import { table } from './table.js';
import { pathOf, symbolBits } from './view.js';

/** The share's ticker, which leads to its page, and its name below it. @param {any} row */
export const shareBits = ({ symbol, name }) => [
  ...symbolBits(symbol, pathOf(symbol)),
  { text: name ?? '\u00a0', kind: 'company' },
];

/** A price with its age, or a dash. @param {any} row */
export const lastBits = (row) => (row.last_price === null ? ['–'] : [price(row.last_price), ...ageMark(row)]);

/** @param {string} name @param {string} label */
export const moverTable = (name, label) =>
  table({
    name,
    caption: label,
    plain: true,
    isFixed: true,
    key: (row) => row.symbol,
    columns: [
      { of: 'symbol', label, wide: true, show: shareBits },
      { of: 'last_price', label: t.last, number: true, live: true, show: lastBits },
      change('change_pct', t.change, percent, text.noClose, { live: true }),
    ],
  });
