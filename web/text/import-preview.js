import { plural } from '../text.js';

export const preview = {
  /** @param {string} file */
  title: (file) => `What ${file} would change`,
  /** @param {string} format @param {string} account @param {string} period */
  what: (format, account, period) => `${format}, ${period}, into ${account}`,
  /** @param {string} person */
  person: (person) => `, of ${person}`,
  otherBroker: 'This is a file of the other broker.',
  /** @param {string} account */
  instead: (account) => `Into ${account} instead`,
  caption: 'Lines of the file by what happens to them',
  lines: 'Lines',
  happens: 'What happens',
  rows: {
    new: ['New', 'are added', 'is added'],
    known: ['Known', 'stay as they are', 'stays as it is'],
    conflicts: [
      'Conflicts',
      'have the id of a known trade and other figures: neither counts until you choose',
      'has the id of a known trade and other figures: neither counts until you choose',
    ],
    refused: ['Refused', 'are not taken', 'is not taken'],
    proposals: ['Events', 'are no trades, such as a bonus: each is offered below', 'is no trade, such as a bonus: it is offered below'],
  },
  report: ['New', 'are kept as what the broker’s report states', 'is kept as what the broker’s report states'],
  refused: 'Refused lines',
  conflicts: 'Conflicts',
  proposals: 'Events that the file tells of',
  proposalsWhy: 'None is applied by itself. Take those that are right, once the file is confirmed.',
  notes: 'Notes',
  /** @param {number} line */
  line: (line) => `Line ${line}`,
  /** @param {string} stated @param {string} stored */
  clash: (stated, stored) => `the file says ${stated}, known is ${stored}`,
  /** @param {number} n */
  more: (n) => `and ${plural(n, 'more line', 'more lines')}`,
  confirm: 'Confirm',
  drop: 'Drop',
  take: 'Apply',
  taken: 'Applied.',
  /** @param {string} what */
  takeThis: (what) => `Apply: ${what}`,
  /** @param {string} left */
  expires: (left) => `Expires in ${left}.`,
  expired: 'This preview has expired. Drop the file once more.',
  dropped: 'The preview is dropped; nothing changed.',
  /** @param {number} n */
  confirmed: (n) => `${plural(n, 'line', 'lines')} added. It can be undone below.`,
  /** @param {string} file */
  notTaken: (file) => `${file} is not taken.`,
  seen: 'Its first lines, as they were read:',
  force: 'It is the same demat account: take it',
  close: 'Close',
};
