// The broker's own report against the ledger: what does not agree first, what agrees folded.
import { call, withQuery } from '../data/api.js';
import { day, rupees, signedRupees } from '../data/format.js';
import { compared, hasReport } from '../data/gains.js';
import { agreement as t } from '../text/agreement.js';
import { ledger } from '../text/ledger.js';
import { figureList } from './figure-list.js';
import { known, secret, simulated } from './figures.js';
import { shareBits } from './share-name.js';
import { table } from './table.js';
import { button, h } from './view.js';

/** @typedef {Answer<'/api/trades/agreement'>} Agreement */
/** @typedef {Agreement['lines'][number]} Line */

/** @param {{ account: string | null, answer: Agreement }} of */
export function agreementSection({ account, answer }) {
  const heading = (/** @type {boolean | undefined} */ isSimulated) =>
    h('h2', { id: 'agreement' }, t.title, account && `, ${ledger.account(account)}`, ' ', simulated(isSimulated));
  const section = (/** @type {any[]} */ ...rest) => h('section', { 'aria-labelledby': 'agreement' }, ...rest);
  if (!hasReport(answer)) return section(heading(false), h('p', { class: 'muted' }, t.none));
  const words = [
    t.agreed(answer.agreed),
    answer.differs > 0 && t.differs(answer.differs),
    answer.only_report > 0 && t.onlyReport(answer.only_report),
    answer.only_ledger > 0 && t.onlyLedger(answer.only_ledger),
  ];
  const money = secret(signedRupees);
  return section(
    heading(answer.lines.some((line) => line.simulated)),
    h('p', null, `${words.filter(Boolean).join(', ')}.`),
    figureList([
      [t.amountAgreed, money(answer.amount_agreed)],
      [t.amountOpen, money(answer.amount_open)],
    ]),
    linesOf(answer, account),
  );
}

/** @param {Agreement} answer @param {string | null} account */
function linesOf(answer, account) {
  let lines = answer.lines;
  let cursor = answer.next_cursor;
  const open = table(shapeOf('open', t.caption));
  const agreed = table(shapeOf('agreed', t.agreedCaption));
  const folded = h('details', null, h('summary', null, t.agreed(answer.agreed)), agreed.node);
  const draw = () => {
    const both = compared(lines);
    open.update(both.open);
    agreed.update(both.agreed);
    open.node.hidden = both.open.length === 0;
    folded.hidden = both.agreed.length === 0;
    older.hidden = cursor === null;
  };
  const more = async () => {
    const page = await call(withQuery('/api/trades/agreement', { fy: answer.fy, account, cursor }));
    lines = [...lines, ...page.lines];
    cursor = page.next_cursor;
    draw();
  };
  const older = button(t.older, more);
  draw();
  return h('div', null, open.node, folded, h('p', null, older));
}

/** What agrees not, and what is counted otherwise. @param {Line} line @returns {Bit[]} */
function stateOf({ status, what, notes }) {
  const words = t.status[/** @type {'agreed'} */ (status)] ?? status;
  const parts = what.map((one) => t.what[/** @type {'cost'} */ (one)] ?? one).join(', ');
  const why = notes.map((one) => t.notes[/** @type {'purchase_expenses'} */ (one)] ?? one).join('; ');
  return [
    { text: words, kind: status === 'agreed' ? 'mark' : 'mark delayed', why: why || undefined },
    ...(parts ? [' ', { text: parts, kind: 'note-small' }] : []),
  ];
}

/** The gain of one side, which opens to what it stands on. @param {'report' | 'ledger'} side @param {string} label @param {string} at @returns {Column<Line>} */
const sideOf = (side, label, at) => ({
  key: side,
  label,
  number: true,
  at,
  show: (line) => known(line[side]?.gain, secret(signedRupees), t.absent),
});

/** @param {string} name @param {string} caption @returns {Shape<Line>} */
const shapeOf = (name, caption) => ({
  name: `agreement ${name}`,
  caption,
  isFixed: true,
  key: (line) => [line.account, line.isin ?? line.symbol, line.acquired_on, line.sold, line.status, JSON.stringify(line.report)].join(' '),
  label: (line) => `${line.symbol ?? line.isin}, ${day(line.sold)}`,
  columns: [
    { key: 'symbol', label: t.symbol, at: 'a', show: shareBits },
    { key: 'sold', label: t.sold, at: 'c', show: (line) => day(line.sold) },
    { key: 'acquired', label: t.acquired, rank: 2, show: (line) => day(line.acquired_on) },
    sideOf('report', t.report, 'e'),
    sideOf('ledger', t.ledger, 'f'),
    { key: 'state', label: t.state, at: 'b', show: stateOf },
  ],
  details: sidesOf,
});

/** Both sides in full. @param {Line} line */
function sidesOf(line) {
  const money = secret(rupees);
  return h(
    'ul',
    { class: 'parts' },
    /** @type {const} */ (['report', 'ledger']).map((side) => {
      const its = line[side];
      return h(
        'li',
        null,
        h('b', null, t[side]),
        its ? h('span', null, t.sideOf(its.quantity, money(its.cost), money(its.proceeds), secret(signedRupees)(its.gain), its.section)) : h('span', null, t.absent),
      );
    }),
  );
}
