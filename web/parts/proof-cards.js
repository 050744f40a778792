// A share of which ledger and broker do not fit, as a card with what mends it; the corrections; and what fits.
import { call } from '../data/api.js';
import { correctionWords } from '../data/correction.js';
import { day, isKnown, quantity, signed } from '../data/format.js';
import { importPath, periodWords } from '../data/ledger.js';
import { integrity as t } from '../text/integrity.js';
import { ledger } from '../text/ledger.js';
import { causes, reasonOf } from '../text/reasons.js';
import { ask } from './dialog.js';
import { figureList } from './figure-list.js';
import { known, secret, simulated } from './figures.js';
import { companyOf, pathOfShare, shareBits } from './share-name.js';
import { table } from './table.js';
import { button, h, pieces } from './view.js';

/** @typedef {import('../data/ledger.js').Proof} Proof */
/** @typedef {Answer<'/api/trades/corrections'>['corrections'][number]} Stated */
/** @typedef {{ changed: () => void, announce: (words: string) => void, tell: (words: string) => void }} Acts */

const many = secret(quantity);
/** A difference says its sign. @param {number | null} value */
const difference = (value) => (isKnown(value) && value > 0 ? `+${many(value)}` : signed(many(value)));

/** @param {Proof} row */
const nameOf = (row) => row.symbol ?? row.isin ?? ledger.noSymbol;

/** @param {Proof} row @param {Acts} act */
export function proofCard(row, act) {
  const isin = row.isins.length > 1 ? row.isins.join(', ') : (row.isin ?? '');
  const { bought, sold } = row.pending;
  const figures = [
    [t.ledger, many(row.ledger)],
    [t.broker, pieces([known(row.synced, many, t.notSynced)])],
    [t.difference, pieces([known(row.difference, difference, t.notSynced)])],
  ];
  return h(
    'article',
    { class: 'panel proof-card' },
    h('h2', null, pieces([{ text: nameOf(row), kind: 'symbol', href: pathOfShare(row) }]), ' ', simulated(row.simulated)),
    h('p', { class: 'small' }, [companyOf(row), ledger.account(row.account), isin].filter(Boolean).join(' · ')),
    figureList(figures),
    row.cause && h('p', { class: 'strong' }, causes[row.cause] ?? row.cause),
    h(
      'ul',
      { class: 'told-lines' },
      row.reasons.map((code) => h('li', null, h('b', null, reasonOf(code)[0]), `. ${reasonOf(code)[1]}`)),
      row.uncovered > 0 && h('li', null, t.uncovered(many(row.uncovered))),
      (bought > 0 || sold > 0) && h('li', null, t.pending(many(bought), many(sold))),
    ),
    h('p', { class: 'actions' }, mendsOf(row, act)),
  );
}

/** What a person can do about it. @param {Proof} row @param {Acts} act */
function mendsOf(row, act) {
  const choose = row.conflicts > 0 && row.symbol;
  return [
    choose && h('a', { class: 'button primary', href: `/trades?symbol=${encodeURIComponent(choose)}` }, t.choose),
    row.reasons.includes('not_yet_synced') && h('a', { class: 'button', href: '/portfolio' }, t.sync),
    ...row.mends.map((/** @type {any} */ mend) => {
      if (mend.correction) return button(mendWords(mend.correction), () => mendIt(row, mend.correction, act));
      const { from, to } = mend.import;
      const label = from ? t.importOf(periodWords(mend.import)) : t.importOlder(to ? day(to) : '');
      return h('a', { class: 'button', href: importPath(row.account, mend.import) }, label);
    }),
  ];
}

/** @param {import('../data/correction.js').Correction} of */
function mendWords(of) {
  const say = t.mends[of.kind];
  if (!say) return `${correctionWords(of)}…`;
  return say(of.numerator ? t.ratio(of.numerator, of.denominator) : many(of.quantity));
}

/** @param {Proof} row @param {import('../data/correction.js').Correction} correction @param {Acts} act */
async function mendIt(row, correction, act) {
  try {
    const { apply } = await import('./correction-form.js');
    if (!(await apply(correction, row.symbol))) return;
    act.announce(t.applied);
    act.changed();
  } catch (failed) {
    act.tell(failed.message);
  }
}

/** All shares of an account that nobody has said anything of. @param {{ name: string, shares: number }} account @param {boolean} canSync */
export const accountCard = ({ name, shares }, canSync) =>
  h(
    'article',
    { class: 'panel proof-card' },
    h('h2', null, ledger.account(name)),
    h('p', null, t.neverSynced(shares)),
    name === 'a' || name === 'b'
      ? canSync && h('p', { class: 'actions' }, h('a', { class: 'button', href: `/portfolio/sync/${name}` }, t.sync))
      : h('p', { class: 'small' }, t.neverWill),
  );

/** What was said by the person, each with its taking back. @param {Stated[]} list @param {Proof[]} rows @param {Acts} act */
export function correctionList(list, rows, act) {
  if (list.length === 0) return null;
  const name = (/** @type {string} */ isin) => rows.find((row) => row.isins.includes(isin))?.symbol ?? null;
  return h(
    'section',
    { 'aria-labelledby': 'corrections' },
    h('h2', { id: 'corrections' }, t.corrections),
    h(
      'ul',
      { class: 'corrections' },
      list.map(({ id, correction }) => {
        const words = correctionWords(correction, name(correction.isin));
        const remove = button(t.remove, () => takeBack(id, words, act), {
          class: 'quiet',
          'aria-label': t.removeThis(words),
        });
        return h('li', null, words, ' ', remove);
      }),
    ),
  );
}

/** @param {string} id @param {string} words @param {Acts} act */
async function takeBack(id, words, act) {
  if (!(await ask(t.removeSure(words), t.removeYes, t.removeNo))) return;
  try {
    await call(`/api/trades/corrections/${id}`, { method: 'DELETE' });
    act.announce(t.removed);
    act.changed();
  } catch (failed) {
    act.tell(failed.message);
  }
}

/** What fits, folded: nobody has to do anything about it. @param {Proof[]} rows */
export function fittingList(rows) {
  if (rows.length === 0) return null;
  const shown = table({
    name: 'fitting',
    caption: t.fits(rows.length),
    plain: true,
    isFixed: true,
    key: (/** @type {Proof} */ row) => `${row.account} ${row.isin ?? row.symbol}`,
    columns: [
      { key: 'symbol', label: t.share, show: shareBits },
      { key: 'account', label: t.account, show: (row) => ledger.short(row.account) },
      { key: 'ledger', label: t.ledger, number: true, show: (row) => many(row.ledger) },
      { key: 'synced', label: t.broker, number: true, show: (row) => known(row.synced, many, t.notSynced) },
    ],
  });
  shown.update(rows);
  return h('details', { class: 'fitting' }, h('summary', null, t.fits(rows.length)), shown.node);
}
