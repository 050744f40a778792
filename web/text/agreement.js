import { plural } from '../text.js';

export const agreement = {
  title: 'Against the broker’s own report',
  none: 'No tax report of this year is imported. Drop it on the page Trades, and each line is compared.',
  /** @param {number} n */
  agreed: (n) => `${plural(n, 'line agrees', 'lines agree')}`,
  /** @param {number} n */
  differs: (n) => `${plural(n, 'line differs', 'lines differ')}`,
  /** @param {number} n */
  onlyReport: (n) => `${n} only in the report`,
  /** @param {number} n */
  onlyLedger: (n) => `${n} only in the ledger`,
  amountAgreed: 'Gain that agrees',
  amountOpen: 'Gain that does not',
  caption: 'Lines that do not agree',
  agreedCaption: 'Lines that agree',
  status: { agreed: 'Agrees', differs: 'Differs', only_report: 'Only in the report', only_ledger: 'Only in the ledger' },
  what: { quantity: 'quantity', cost: 'cost', proceeds: 'sold for', term: 'term', fmv: 'price of 31 Jan 2018', class: 'class' },
  notes: {
    term_at_anniversary: 'the report calls long what was sold on the anniversary of its purchase',
    purchase_expenses: 'the report deducts expenses of the purchase beside a price of 31 January 2018',
  },
  symbol: 'Share',
  sold: 'Sold',
  acquired: 'Bought',
  state: 'State',
  report: 'Report',
  ledger: 'Ledger',
  absent: 'It is not there',
  older: 'More',
  /** @param {number} n @param {string} cost @param {string} proceeds @param {string} gain @param {string} section */
  sideOf: (n, cost, proceeds, gain, section) =>
    `${n} shares, cost ${cost}, sold for ${proceeds}, gain ${gain}, ${section}`,
};
