import { plural } from '../text.js';

export const returns = {
  title: 'Returns',
  xirr: 'Return a year (XIRR)',
  xirrWhy: 'The yearly rate at which what was paid became what was received and what is held now. Before tax; dividends are not in it.',
  absolute: 'Absolute',
  absoluteWhy: 'Value and sales less purchases, as a part of the purchases',
  /** @param {string} name */
  benchmark: (name) => `${name}, same days`,
  benchmarkWhy: 'The same amounts put into the index at each day’s close. A price index, so without dividends.',
  noIndex: 'The index’s closes of those days are not stored',
  realised: {
    /** @param {string} fy */
    short: (fy) => `Realised ${fy}, short-term`,
    /** @param {string} fy */
    long: (fy) => `Realised ${fy}, long-term`,
  },
  realisedWhy: 'Of what is proved, in this financial year. A worksheet, before tax.',
  allIn: 'Every share is in it.',
  /** @param {number} n */
  without: (n) => `Without ${plural(n, 'share', 'shares')}`,
  besides: 'also without',
  /** @param {string} reason @param {string} names */
  group: (reason, names) => `${reason}: ${names}`,
  mend: 'Mend it',
  caption: 'Returns of each share',
  share: 'Share',
  purchases: 'Purchases',
  sales: 'Sales',
  value: 'Value',
  noValue: 'Not known',
  none: 'No trades yet. Today’s positions are known, their history is not, so there is no return.',
  toTrades: 'Bring the history in',
  links: 'The trades ledger',
};
