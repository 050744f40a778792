import { plural } from '../text.js';

export const trades = {
  title: 'Trades',
  /** @param {number} n */
  show: (n) => `show the ${n}`,
  conflicts: 'Two files disagree about a trade of',
  drop: 'Drop a broker’s file here, or',
  dropMore: 'Tradebook or tax report of Zerodha or ICICI Direct, as CSV, XLSX, ZIP or XLS, as the broker gave it.',
  choose: 'Choose files',
  where: 'Where the brokers offer them',
  promise: 'A file goes to this bhav alone, and never leaves the machine it runs on. Nothing counts before you confirm.',
  account: 'Account',
  other: 'Another account…',
  otherName: 'Its name',
  otherHint: '1 to 40 of a-z, 0-9, _ and -. It is never synced, so never proved.',
  badName: 'A name is 1 to 40 of a-z, 0-9, _ and -.',
  /** @param {string} name */
  reading: (name) => `Reading ${name}…`,
  /** @param {number} n */
  fewer: (n) => `Four files at a time: ${plural(n, 'file was', 'files were')} left out.`,
  /** @param {string} account @param {string} period */
  wanted: (account, period) => `Missing of ${account}: a file of ${period}.`,
  imports: 'Imports',
  noImports: 'None yet.',
  importsCaption: 'What was imported',
  file: 'File',
  period: 'Period',
  added: 'New',
  known: 'Known',
  refused: 'Refused',
  when: 'Imported',
  /** @param {number} n */
  newLines: (n) => plural(n, 'new line', 'new lines'),
  undo: 'Undo',
  dropIt: 'Drop',
  /** @param {string} what */
  undoThis: (what) => `Undo ${what}`,
  /** @param {string} what */
  undoSure: (what) => `Undo ${what}? Its lines no longer count. The file can be dropped here again.`,
  undoYes: 'Undo it',
  undoNo: 'Keep it',
  undone: 'The import is undone.',
  /** @param {string} at */
  waits: (at) => `Not confirmed, until ${at}`,
  confirm: 'Confirm',
  deleteAll: 'Delete all trades…',
  deleteSure: 'Delete all trades, imports and corrections? Positions, journal and holdings stay.',
  deleteYes: 'Delete them all',
  deleteNo: 'Keep them',
  deleted: 'All trades are deleted.',
  list: 'All trades',
  caption: 'Trades, newest first',
  by: { symbol: 'Symbol', account: 'Account', side: 'Side', from: 'From', to: 'To' },
  all: 'All',
  date: 'Date',
  symbol: 'Symbol',
  what: 'Trade',
  side: 'Side',
  quantity: 'Qty',
  price: 'Price',
  time: 'Time',
  exchange: 'Exchange',
  charges: 'Charges',
  noCharges: 'The file states none',
  source: 'From',
  /** @param {string} format @param {number} line */
  line: (format, line) => `${format}, line ${line}`,
  /** @param {string} side @param {string} n @param {string} price */
  whatOf: (side, n, price) => `${side} ${n} × ${price}`,
  journal: 'Journal',
  /** @param {string} what @param {string} date */
  journalThis: (what, date) => `Write about ${what} of ${date} in the journal`,
  disagree: 'Two rows disagree',
  /** @param {string} n @param {string} price */
  keep: (n, price) => `Keep ${n} × ${price}`,
  /** @param {string} side */
  disagreeing: (side) => `${side}, two rows disagree`,
  older: 'Older',
  csv: 'CSV ↓',
  none: 'No trade fits the filters.',
  noneYet: 'No trades yet: a tax report alone has none.',
  marks: {
    mtf: ['Margin-funded', 'Bought with the broker’s money'],
    charges_unclear: ['Charges unclear', 'The charges in the file do not add up to their sum, so none is taken'],
    no_session: ['No trading day', 'The exchange was closed on this date'],
    check: ['Check', 'Bought on one exchange and sold on the other on one day: both are counted as deliveries'],
    conflict: ['Two rows disagree', 'Neither counts until you choose'],
  },
  /** @param {{ brokerage?: string, stt?: string, stamp_duty?: string, other?: string }} of */
  chargesOf: (of) =>
    [
      of.brokerage && `brokerage ${of.brokerage}`,
      of.stt && `STT ${of.stt}`,
      of.stamp_duty && `stamp duty ${of.stamp_duty}`,
      of.other && `other ${of.other}`,
    ]
      .filter(Boolean)
      .join(', '),
  auction: 'auction',
};
