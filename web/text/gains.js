import { plural } from '../text.js';

export const gains = {
  title: 'Gains',
  year: 'Financial year',
  person: 'Person',
  self: 'Myself',
  leftOut: 'Left out of the totals',
  nothingLeftOut: 'Nothing of this year is left out.',
  /** @param {number} n */
  leftOutWhy: (n) =>
    `${plural(n, 'share is', 'shares are')} in none of the totals below, because ${n === 1 ? 'it is' : 'they are'} not fully proved.`,
  /** @param {string} reason @param {number} n */
  leftOutOf: (reason, n) => `${reason}: ${plural(n, 'share', 'shares')}`,
  mend: 'Mend it on the page Integrity',
  toTrades: 'Import files',
  ignored: 'Loss that is ignored',
  stated: 'By the broker’s report alone, in no total',
  totals: 'Totals of what is proved',
  noSales: 'No sale of this year is proved.',
  none: 'No trades yet, so there are no gains.',
  classes: { short: 'Short-term', long: 'Long-term', intraday: 'Intraday', fno: 'Futures and options', buyback: 'Buyback' },
  /** @param {string} code */
  classOf: (code) => gains.classes[/** @type {'short'} */ (code)] ?? code,
  turnover: 'Turnover (F&O)',
  turnoverWhy: 'The sum of all results without their sign, as the broker counts it',
  losses: 'of it losses',
  buyback: {
    exempt: 'Buyback, exempt',
    deemed: 'Buyback, deemed dividend',
    short: 'Buyback, short-term',
    long: 'Buyback, long-term',
  },
  fractions: 'Cash for fractions',
  dividends: 'Dividends',
  charges: {
    all: 'Brokerage and charges of every sale are known and deducted; STT is not.',
    some: 'Brokerage and charges are deducted where a file states them, which is not so for every sale; STT is not.',
    none: 'No file states brokerage and charges, so none is deducted.',
  },
  windows: 'By rate',
  windowsCaption: 'Gains by the dates between which a rate holds',
  sold: 'Sold',
  /** @param {string} from @param {string} to */
  between: (from, to) => `${from} to ${to}`,
  /** @param {string} rate */
  at: (rate) => `at ${rate}`,
  periods: 'By advance-tax date',
  periodsCaption: 'Gains by the dates of advance tax',
  /** @param {string} to */
  until: (to) => `to ${to}`,
  rules: 'Rules used',
  /** @param {string | null} section @param {string} source */
  lawOf: (section, source) => [section && `Section ${section}`, source].filter(Boolean).join(', '),
  /** @param {string} until */
  knownUntil: (until) => `Known until ${until}`,
  meet: 'Long-term losses meet long-term gains only; short-term losses both; losses of a day’s trades only such gains. What is left is carried 8 years, of a day’s trades 4.',
  sales: 'Sales',
  salesCaption: 'Sales of the year, each with the purchases that it took',
  noneSold: 'Nothing was sold in this year.',
  symbol: 'Share',
  account: 'Account',
  quantity: 'Qty',
  proceeds: 'Sold for',
  cost: 'Cost',
  gain: 'Gain',
  state: 'State',
  proved: 'Proved',
  notProved: 'Not proved',
  agrees: 'agrees with the report',
  differs: 'differs from the report',
  notKnown: 'Not known',
  acquired: 'Bought',
  fmv: 'Price 31 Jan 2018',
  considered: 'Cost considered',
  older: 'More',
  csv: 'CSV ↓',
  worksheet: 'Worksheet, Schedule 112A',
  worksheetWhat:
    'The proved long-term gains in the columns of Schedule 112A. A worksheet to copy from or to check with, and no upload. Non-residents, minors and families are not considered.',
  save: 'Save the worksheet (CSV)',
  /** @param {number} n */
  rows: (n) => `Saved, with ${plural(n, 'row', 'rows')}.`,
  /** @param {number} n */
  without: (n) => `${plural(n, 'share', 'shares')} of the year are not in it; they are named above.`,
  noForm: 'No form of this year is known yet, so there is no worksheet. The gains above are computed all the same.',
  persons: 'Whose account is whose',
  personsWhy: 'Exemption and set-off are of one person, so totals are never of two. Name the person of each account.',
  savePerson: 'Save',
  /** @param {string} account */
  personOf: (account) => `Person of ${account}`,
  saved: 'Saved.',
};
