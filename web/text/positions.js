import { plural } from '../text.js';

export const positions = {
  caption: 'Positions',
  kinds: { net: 'Net', day: 'Day' },
  kind: 'Net or day',
  product: 'Product',
  realised: 'Realised',
  unrealised: 'Unrealised',
  unknown: 'The broker does not say',
  why: 'Net and day list the same trades and are never added up. Prices are from the sync.',
  /** @param {string} d */
  earlier: (d) => `Of ${d}`,
  earlierWhy: 'The sync was on an earlier trading day',
  /** @param {string} d @param {string} at */
  of: (d, at) => `As of ${d}, synced ${at}.`,
  notToday: '⚠ Not of today: sync again.',
  none: 'No open positions.',
  /** @param {number} n @param {string} pnl */
  total: (n, pnl) => `${plural(n, 'open position', 'open positions')}, P&L ${pnl}.`,
  /** @param {number} n */
  leftOut: (n) => `${n} without a known P&L left out.`,
};
