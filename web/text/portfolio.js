import { plural } from '../text.js';

export const portfolio = {
  title: 'Portfolio',
  syncA: 'Sync broker A',
  syncB: 'Sync broker B',
  value: 'Value',
  invested: 'Invested',
  pnl: 'P&L',
  today: 'Today',
  /** @param {string} d */
  on: (d) => `On ${d}`,
  noDay: 'No holding has a price of this day and a known previous close',
  tabs: { holdings: 'Holdings', positions: 'Positions', allocation: 'Allocation', returns: 'Returns' },
  tabsLabel: 'Holdings, positions, allocation or returns',
  caption: 'Holdings',
  costUnknown: 'Cost not known',
  costAllKnown: 'The brokers know what every share cost.',
  /** @param {number} n */
  costUnknownWhy: (n) =>
    `Value of ${plural(n, 'holding', 'holdings')} without a known cost. Invested, P&L and this are the value.`,
  /** @param {number} n */
  notInPnl: (n) => `P&L without ${plural(n, 'holding', 'holdings')}`,
  /** @param {number} n */
  notPriced: (n) => `${n} without a price`,
  /** @param {number} n */
  notInToday: (n) => `today without ${n}`,
  allIn: 'These figures are of every holding.',
  /** @param {number} n @param {string} value */
  withoutCost: (n, value) => `P&L excludes ${plural(n, 'holding', 'holdings')} whose cost is not known (${value}).`,
  /** @param {number} n */
  withoutPrice: (n) => `${plural(n, 'holding has', 'holdings have')} no price and no part in any total.`,
  /** @param {number} n */
  withoutDay: (n) => `Today’s change excludes ${plural(n, 'holding', 'holdings')} (no fresh price).`,
  settling: 'Prices of today are being fetched.',
  /** @param {string} who */
  noneAtBroker: (who) => `${who} ${who.includes(' and ') ? 'hold' : 'holds'} no shares for you; see Positions.`,
  /** @param {string} n @param {string} cost */
  lot: (n, cost) => `${n} × ${cost}`,
  /** @param {string} n */
  shares: (n) => `${n} shares`,
  /** @param {string} at */
  fromSync: (at) => `Synced ${at}`,
  showThem: 'Show them',
  showAll: 'Show all',
  older: 'older than today',
  /** @param {string} why */
  notRead: (why) => `The portfolio could not be read: ${why}`,
  /** @param {string} who @param {string} at */
  syncedAt: (who, at) => `Broker ${who} synced ${at}`,
  /** @param {string} who */
  neverSynced: (who) => `Broker ${who} never synced`,
  /** @param {string} from @param {string} to */
  priced: (from, to) => (from === to ? `prices of ${from}` : `prices of ${from} to ${to}`),
  view: 'View',
  views: { isin: 'Merged by ISIN', broker: 'By broker' },
  filter: 'Filter',
  columns: 'Columns',
  /** @param {number} n @param {number} all */
  count: (n, all) => (n === all ? plural(all, 'holding', 'holdings') : `${n} of ${plural(all, 'holding', 'holdings')}`),
  instrument: 'Instrument',
  quantity: 'Qty',
  quantityHint: 'Settled and T1; pledged and funded shares stand beside it',
  average: 'Avg cost',
  last: 'Last',
  pnlPct: 'P&L %',
  dayPct: 'Today %',
  dayHint: 'Against the previous close',
  share: 'Share',
  company: 'Company',
  exchange: 'Exchange',
  brokers: 'Brokers',
  priceTime: 'Price of',
  shareHint: 'Share of the portfolio’s value',
  /** @param {string} n */
  pledged: (n) => `pledged ${n}`,
  /** @param {string} n */
  funded: (n) => `margin-funded ${n}`,
  noCost: 'The broker does not know what every share cost',
  noPrice: 'There is no price',
  noClose: 'There is no price of the day, or no previous close',
  /** @param {string} at */
  priceOf: (at) => `Price of ${at}`,
  marks: {
    unresolved: 'Unknown code',
    discrepancy: 'Cost in doubt',
    action: 'Split or bonus?',
    disputed: 'Quantity in doubt',
  },
  why: {
    unresolved: 'No instrument list has this code of the broker; it is shown as it came',
    discrepancy: 'The broker itself marks its figures as doubtful',
    action: 'Quantity and price moved like at a split, a bonus or a merger',
    disputed: 'Two lists of the broker name different quantities',
  },
  broker: { a: 'Broker A', b: 'Broker B' },
  brokerIs: { a: 'Kite Connect: Zerodha', b: 'Breeze: ICICI Direct' },
};
