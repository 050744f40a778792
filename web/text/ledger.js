// Words of the trades ledger that several pages share. Every code that the service may answer has its sentence here.
import { plural } from '../text.js';

export const ledger = {
  worksheet: 'A worksheet from your own files. No advice, no tax is computed.',
  pages: { trades: 'Trades', gains: 'Gains', integrity: 'Integrity' },
  accounts: { a: 'Broker A (Zerodha)', b: 'Broker B (ICICI Direct)' },
  /** @param {string} name */
  account: (name) => ledger.accounts[/** @type {'a' | 'b'} */ (name)] ?? name,
  /** Where there is less room. @param {string} name */
  short: (name) => (name === 'a' || name === 'b' ? `Broker\u00a0${name.toUpperCase()}` : name),
  sides: { buy: 'Buy', sell: 'Sell' },
  formats: {
    zerodha_tradebook: 'Zerodha tradebook',
    zerodha_tax_report: 'Zerodha tax report',
    icici_transactions: 'ICICI Direct, all transactions',
    icici_tradebook: 'ICICI Direct tradebook',
    icici_capital_gains: 'ICICI Direct capital gains',
    sync_a: 'Sync of broker A',
    sync_b: 'Sync of broker B',
  },
  noSymbol: 'Unknown share',
  /** @param {string} n */
  shares: (n) => plural(n, 'share', 'shares'),
};
