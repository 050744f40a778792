// What was imported, each with its undoing; previews that wait are among it.
import { call, serverNow } from '../data/api.js';
import { count, moments } from '../data/format.js';
import { periodWords } from '../data/ledger.js';
import { ledger } from '../text/ledger.js';
import { trades as t } from '../text/trades.js';
import { ask } from './dialog.js';
import { figure } from './figures.js';
import { table } from './table.js';
import { button, h, put } from './view.js';

/** @typedef {Answer<'/api/trades/imports'>['imports'][number]} Import */
/** @typedef {{ changed: () => void, announce: (words: string) => void, tell: (words: string) => void }} Acts */

/** @param {Import} row */
const formatOf = ({ format }) => ledger.formats[/** @type {keyof typeof ledger.formats} */ (format)] ?? format;

/** @param {Acts} act */
export function importList(act) {
  const shown = table(shapeOf(act));
  const box = h('div', null);
  const heading = h(
    'header',
    null,
    h('h2', { id: 'imports' }, t.imports),
    button(t.deleteAll, () => deleteAll(act), { class: 'quiet no-print' }),
  );
  return {
    node: h('section', { 'aria-labelledby': 'imports' }, heading, box),
    /** @param {Import[]} list */
    update(list) {
      shown.update(list);
      const node = list.length ? shown.node : h('p', { class: 'muted' }, t.noImports);
      if (box.firstChild !== node) put(box, node);
    },
  };
}

/** @param {Acts} act @returns {Shape<Import>} */
function shapeOf(act) {
  const name = (/** @type {Import} */ row) => `${formatOf(row)}, ${periodWords(row.period)}`;
  const control = (/** @type {() => Import} */ current) =>
    h(
      'span',
      { class: 'row-actions' },
      current().state === 'preview' && button(t.confirm, () => confirm(current(), act), { class: 'quiet' }),
      button(current().state === 'preview' ? t.dropIt : t.undo, () => undo(current(), name(current()), act), {
        class: 'quiet',
        'aria-label': t.undoThis(name(current())),
      }),
    );
  return {
    name: 'imports',
    caption: t.importsCaption,
    isFixed: true,
    key: (row) => `${row.id} ${row.state}`,
    label: name,
    columns: [
      { key: 'file', label: t.file, at: 'a', show: (row) => ({ text: formatOf(row), kind: 'strong' }) },
      { key: 'account', label: t.account, at: 'c', show: (row) => ledger.short(row.account) },
      { key: 'period', label: t.period, at: 'd', rank: 2, show: (row) => periodWords(row.period) },
      figure('new', t.added, count, { at: 'told' }),
      { key: 'lines', label: t.added, phone: true, at: 'e', show: (row) => t.newLines(row.new) },
      figure('known', t.known, count, { rank: 2 }),
      figure('refused', t.refused, count, { rank: 2 }),
      {
        key: 'when',
        label: t.when,
        at: 'f',
        rank: 3,
        show: (row) =>
          row.expires_at
            ? { text: t.waits(moments(row.expires_at, serverNow())), kind: 'mark delayed' }
            : moments(row.created_at, serverNow()),
      },
      { key: 'acts', label: '', at: 'b', control },
    ],
  };
}

/** @param {Import} row @param {Acts} act */
async function confirm(row, act) {
  await call(`/api/trades/imports/${row.id}/confirm`, { method: 'POST' }).then(act.changed, ({ message }) => {
    act.changed();
    act.tell(message);
  });
}

/** @param {Import} row @param {string} name @param {Acts} act */
async function undo(row, name, act) {
  if (!(await ask(t.undoSure(name), t.undoYes, t.undoNo))) return;
  try {
    await call(`/api/trades/imports/${row.id}`, { method: 'DELETE' });
    act.announce(t.undone);
    act.changed();
  } catch (failed) {
    act.tell(failed.message);
  }
}

/** @param {Acts} act */
async function deleteAll(act) {
  if (!(await ask(t.deleteSure, t.deleteYes, t.deleteNo))) return;
  try {
    await call('/api/trades', { method: 'DELETE', body: { confirm: 'delete all trades' } });
    act.announce(t.deleted);
    act.changed();
  } catch (failed) {
    act.tell(failed.message);
  }
}
