import { plural } from '../text.js';

export const integrity = {
  title: 'Integrity',
  what: 'At each sync the broker says how many of each share you hold. If a trade were missing here, the two would differ.',
  nothing: 'No trades yet, so there is nothing to prove.',
  toTrades: 'Bring them in',
  allFits: 'Everything fits: the trades add up to what the brokers hold.',
  ledger: 'Ledger',
  broker: 'Broker',
  difference: 'Difference',
  notSynced: 'The broker has not said',
  share: 'Share',
  account: 'Account',
  /** @param {string} n */
  uncovered: (n) => `${n} of them were sold without a purchase.`,
  /** @param {string} bought @param {string} sold */
  pending: (bought, sold) => `Not settled at the sync: ${bought} bought, ${sold} sold.`,
  choose: 'Choose between the two rows',
  sync: 'Sync',
  /** @param {string} period */
  importOf: (period) => `Import the file of ${period}`,
  /** @param {string} until */
  importOlder: (until) => (until ? `Import an older file, up to ${until}` : 'Import an older file'),
  /** @param {number} a @param {number} b */
  ratio: (a, b) => `${a} for ${b}`,
  /** What a button says, by the kind of the correction. @type {{ [kind: string]: (n: string) => string }} */
  mends: {
    bonus: (n) => `Apply a bonus of ${n}…`,
    split: (n) => `Apply a split, ${n}…`,
    opening_lot: (n) => `Say when ${n} were acquired…`,
    transfer: (n) => `Say that ${n} left the account…`,
    symbol: () => 'Say which share it is…',
    class: () => 'Say what kind of security it is…',
    fmv: () => 'Take the price of 31 January 2018…',
  },
  applied: 'The correction is applied.',
  /** @param {number} n */
  neverSynced: (n) => `Never synced: ${plural(n, 'share', 'shares')} of it cannot be proved.`,
  neverWill: 'Only broker A and broker B are synced. Its gains stay left out of the totals.',
  corrections: 'Your corrections',
  remove: 'Take back',
  /** @param {string} what */
  removeThis: (what) => `Take back: ${what}`,
  /** @param {string} what */
  removeSure: (what) => `Take this correction back? ${what}`,
  removeYes: 'Take it back',
  removeNo: 'Keep it',
  removed: 'The correction is taken back.',
  /** @param {number} n */
  fits: (n) => plural(n, 'share that fits', 'shares that fit'),
};
