import { plural } from '../text.js';

export const morning = {
  /** @param {string} who @param {string} at */
  lastSynced: (who, at) => `Broker ${who} was last synced ${at}.`,
  both: 'Sync both (2 logins)',
  bothWhy: 'The report of the first leads on to the second.',
  synced: 'Every broker is synced since the last session began.',
  /** @param {number} n @param {string} d */
  signals: (n, d) => `${plural(n, 'new signal', 'new signals')} on what you hold, from the close of ${d}: `,
  /** @param {string} d */
  noSignals: (d) => `No new signal on what you hold, from the close of ${d}.`,
  signalsLater: 'Signals on what you hold come after the next close.',
  /** @param {number} n */
  more: (n) => ` and ${n} more`,
  /** @param {number} n */
  actions: (n) => `${plural(n, 'holding', 'holdings')} may have been split or given a bonus over night: `,
  /** @param {number} n @param {string} at */
  stale: (n, at) => `The ${n === 1 ? 'price' : 'prices'} of ${plural(n, 'holding is', 'holdings are')} stale, the oldest of ${at}.`,
  status: 'What is wrong?',
  fresh: 'No price is stale.',
};
