// Schedule 112A as a worksheet, and whose account is whose.
import { call, withQuery } from '../data/api.js';
import { sharesOf } from '../data/gains.js';
import { text } from '../text.js';
import { gains as t } from '../text/gains.js';
import { ledger } from '../text/ledger.js';
import { button, h, put, say } from './view.js';

/** @typedef {{ changed: () => void, announce: (words: string) => void }} Acts */

/** The worksheet is made when it is wanted: as a file, or the sentence why there is none. @param {import('../data/gains.js').Gains} gains */
export function worksheetSection({ fy, person, left_out: rows }) {
  const missing = sharesOf(rows);
  const said = h('p', { class: 'strong', role: 'status' });
  const save = async () => {
    say(said, '');
    try {
      const csv = await call(withQuery(`/api/trades/tax/${fy}/112a.csv`, { person }), { raw: true });
      const files = await import('../data/csv.js');
      files.save(`worksheet-112a-${fy}.csv`, csv, 'text/csv;charset=utf-8');
      say(said, t.rows(csv.trimEnd().split('\n').length - 1));
    } catch (failed) {
      say(said, failed.code === 'form_not_notified' ? t.noForm : failed.message);
    }
  };
  return h(
    'section',
    { 'aria-labelledby': 'worksheet' },
    h('h2', { id: 'worksheet' }, t.worksheet),
    h('p', { class: 'muted' }, t.worksheetWhat),
    missing > 0 && h('p', null, t.without(missing)),
    h('p', { class: 'actions' }, button(t.save, save, { class: 'primary' })),
    said,
  );
}

/** Whose account is whose; it is read when it is opened. @param {Acts} act */
export function personsSection(act) {
  const box = h('div', null);
  const node = h('details', null, h('summary', null, t.persons), h('p', { class: 'small' }, t.personsWhy), box);
  node.addEventListener('toggle', async () => {
    if (!node.open) return;
    try {
      const { accounts } = await call('/api/trades/accounts');
      put(
        box,
        accounts.map((account) => personForm(account, act)),
      );
    } catch {
      put(box, h('p', { class: 'problem', role: 'alert' }, text.problem.offline));
    }
  });
  return h('section', null, node);
}

/** @param {{ name: string, person: string }} account @param {Acts} act */
function personForm({ name, person }, act) {
  const id = `person-${name}`;
  const input = h('input', { id, value: person, maxlength: 40, autocapitalize: 'off', autocomplete: 'off', spellcheck: 'false' });
  const said = h('span', { role: 'status', class: 'muted' });
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      await call(`/api/trades/accounts/${name}`, { method: 'PUT', body: { person: input.value.trim() } });
      say(said, t.saved);
      act.changed();
    } catch (failed) {
      say(said, failed.errors[0]?.message ?? failed.message);
    }
  };
  return h(
    'form',
    { class: 'person', onsubmit: send },
    h('label', { for: id }, t.personOf(ledger.account(name))),
    input,
    h('button', { type: 'submit', class: 'quiet' }, t.savePerson),
    said,
  );
}
