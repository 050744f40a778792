import { plural } from '../text.js';

export const sync = {
  sync: { a: 'Sync broker A', b: 'Sync broker B' },
  back: '← Portfolio',
  who: {
    a: 'Broker A is any broker that speaks Kite Connect v3, such as Zerodha.',
    b: 'Broker B is any broker that speaks the Breeze API, such as ICICI Direct.',
  },
  stepKey: 'Type your API key and log in at the broker',
  key: 'API key',
  openLogin: 'Open the broker’s login ↗',
  register: 'Once, at the broker: register this as the app’s redirect URL.',
  copy: 'Copy',
  copied: 'Copied',
  notCopied: 'Select it and copy it by hand',
  stepCode: 'You come back with a one-time code',
  code: { a: 'Request token', b: 'API session' },
  codeCame: 'The broker’s code is here. It works once.',
  goBack: 'The tab where you began has the code too. Go back to it; this one can be closed.',
  kept: 'Key and secret are still in the form.',
  /** @param {string} key @param {string} secret */
  demo: (key, secret) => `The simulator’s app has the key ${key} and the secret ${secret}.`,
  fillIn: 'Fill them in',
  codeHint: 'Filled in when you come back; or paste the whole address at which the broker’s login ended.',
  stepSync: 'Type the secret and sync',
  secret: 'API secret',
  promise: 'Sent to the broker for this sync, not stored.',
  replace: 'The portfolio here is to be replaced by that of the other user id',
  replaceWithNone: 'I hold nothing at this broker any more: the holdings here are to go',
  cancel: 'Cancel',
  cancelled: 'The sync was cancelled; nothing has changed unless the broker had answered.',
  asking: { a: 'Asking broker A…', b: 'Asking broker B…' },
};

export const report = {
  /** @param {string} who */
  done: (who) => `Broker ${who} is synced`,
  /** @param {string} id */
  person: (id) => `The portfolio of the user ${id} at the broker.`,
  /** @param {number} n @param {string} p */
  counts: (n, p) => `${plural(n, 'holding', 'holdings')}, ${plural(p, 'open position', 'open positions')}:`,
  /** @param {string} a @param {string} r @param {string} c */
  changes: (a, r, c) => `${a} new, ${r} gone, ${c} changed.`,
  /** @param {number} n */
  trades: (n) => `${plural(n, 'trade is', 'trades are')} new to the ledger.`,
  tradesFailed: {
    broker_failed: 'The broker did not answer for all trades. The next sync asks again.',
    held_back: 'A limit of calls held the trades back. The next sync asks again.',
    late: 'The trades took too long. The next sync asks again.',
    account_differs: 'The trades are not added: this account’s files are of another client of the broker.',
    ledger_full: 'The trades are not added: the ledger is full.',
    ledger_unavailable: 'The trades are not added: the ledger was busy. The next sync asks again.',
  },
  /** @param {number} n */
  more: (n) => `and ${n} more`,
  quantityChanged: 'quantity changed',
  /** @param {string} a @param {string} b */
  from: (a, b) => `${a} → ${b}`,
  /** @param {string} a @param {string} b */
  average: (a, b) => `average ${a} → ${b}`,
  /** @param {number} n */
  unresolved: (n) => `${n} with an unknown code`,
  unresolvedWhy: 'No instrument list has these codes, so they have no live price.',
  suspected: 'Splits, bonuses and the like, as it seems',
  doubtful: 'Costs that the broker calls unreliable',
  doubtfulWhy: 'Their value is right; their cost and profit may be wrong.',
  reasons: {
    inverse_ratios: 'quantity and price moved by inverse ratios, as at a split or a bonus',
    price_leap: 'the price leapt and the quantity has not followed: the value is in doubt until it does',
    base_price: 'the exchange adjusted the price and the quantity has not followed: the value is in doubt until it does',
    average_awaited: 'the shares have come at the old average: the profit is in doubt until the broker corrects it',
    shares_arrived: 'shares came without money, which completes an earlier leap',
  },
  reconciliation: 'Profit, the broker’s figure and ours',
  broker: 'Broker',
  ours: 'Ours',
  difference: 'Difference',
  same: 'They agree to the paisa.',
  notKnown: 'not known',
  whys: {
    no_broker_figure: 'This broker gives no figure of its own.',
    rounding: 'The difference is rounding.',
    t1_quantity: 'The broker leaves out shares that were bought and not yet delivered (T1).',
    unexplained: 'The difference is not explained. Look at your broker’s own page.',
  },
  /** @param {number} n */
  added: (n) => `${n} new`,
  /** @param {number} n */
  removed: (n) => `${n} gone`,
  /** @param {number} n */
  changed: (n) => `${n} changed`,
  toPortfolio: 'To the portfolio',
};
