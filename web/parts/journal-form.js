// The form of a journal entry. What is typed is kept until it is saved.
import { call, serverNow } from '../data/api.js';
import { isoDay } from '../data/format.js';
import { journal as t } from '../text/journal.js';
import { combobox } from './combobox.js';
import { ask } from './dialog.js';
import { field, onSubmit, problemPlace } from './form.js';
import { button, h } from './view.js';

/** @type {{ entry: any, values: { [name: string]: string } } | null} */
let draft = null;

/** What was typed and not saved; `entry` is null for a new one. */
export const unsaved = () => draft;

/** @typedef {import('./form.js').Field} Field */

/**
 * The form for an entry, or with null for a new one.
 * @param {any} entry
 * @param {{ done: () => void, close: () => void }} then
 * @param {{ [name: string]: string }} [begun] what a new one is filled with
 */
export function entryForm(entry, then, begun) {
  const id = entry?.id ?? null;
  if (begun) draft = { entry: null, values: begun };
  const fields = fieldsOf(entry, draft && (draft.entry?.id ?? null) === id ? draft.values : {});
  const problem = problemPlace();
  const form = h(
    'form',
    { class: 'panel entry', method: 'post', novalidate: true },
    h('h2', null, id === null ? t.add : t.edit),
    h(
      'div',
      { class: 'grid-fields' },
      fields.map(({ node }) => node),
    ),
    problem,
    h(
      'p',
      { class: 'actions' },
      h('button', { type: 'submit', class: 'primary' }, t.save),
      ' ',
      button(t.cancel, () => close()),
    ),
  );

  /** What was typed is thrown away only by who says so. */
  const close = async () => {
    if (draft && !(await ask(t.discard, t.discardYes, t.discardNo))) return;
    draft = null;
    then.close();
  };

  form.addEventListener('input', () => {
    draft = { entry, values: Object.fromEntries(fields.map(({ name, input }) => [name, input.value])) };
  });
  form.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'Escape' && !event.defaultPrevented) {
      event.preventDefault();
      close();
    }
  });
  onSubmit(form, fields, problem, async () => {
    const { body, wrong } = bodyOf(fields);
    if (wrong) throw wrong;
    if (id === null) await call('/api/journal', { method: 'POST', body });
    else await call(`/api/journal/${id}`, { method: 'PUT', body });
    draft = null;
    then.done();
  });
  return form;
}

/** The fields, with what was typed before what the entry has. @param {any} entry @param {{ [name: string]: string }} typed */
function fieldsOf(entry, typed) {
  const value = (/** @type {string} */ name, first = '') => typed[name] ?? String(entry?.[name] ?? first);
  const side = h(
    'select',
    { name: 'side' },
    Object.entries(t.sides).map(([name, label]) => h('option', { value: name }, label)),
  );
  side.value = value('side', 'buy');
  const symbol = combobox({ name: 'symbol', value: value('symbol'), choose: () => {} });
  const today = Number.isNaN(serverNow()) ? '' : isoDay(serverNow());
  const symbolField = field({
    name: 'symbol',
    label: t.symbol,
    hint: t.symbolHint,
    control: symbol.input,
    required: true,
  });
  symbolField.node.querySelector('.with')?.append(symbol.list);
  return [
    field({
      name: 'traded_on',
      label: t.date,
      type: 'date',
      value: value('traded_on', today),
      max: today,
      required: true,
    }),
    symbolField,
    field({ name: 'side', label: t.side, control: side }),
    field({ name: 'quantity', label: t.quantity, inputmode: 'decimal', value: value('quantity'), required: true }),
    field({ name: 'price', label: t.price, inputmode: 'decimal', value: value('price'), required: true }),
    field({ name: 'fees', label: t.fees, inputmode: 'decimal', value: value('fees') }),
    field({ name: 'strategy', label: t.strategy, value: value('strategy') }),
    field({ name: 'tags', label: t.tags, hint: t.tagsHint, value: typed.tags ?? (entry?.tags ?? []).join(', ') }),
    field({ name: 'notes', label: t.notes, type: 'textarea', value: value('notes'), rows: 3 }),
  ];
}

/** @param {Field[]} fields */
function bodyOf(fields) {
  /** @type {any} */
  const body = {};
  const errors = [];
  for (const { name, input } of fields) {
    const typed = input.value.trim();
    if (['quantity', 'price', 'fees'].includes(name)) {
      if (typed === '' && name === 'fees') continue;
      // People type 1,23,456.50.
      const number = Number(typed.replaceAll(',', ''));
      if (typed === '') errors.push({ field: name, message: t.required });
      else if (!Number.isFinite(number)) errors.push({ field: name, message: t.notNumber });
      body[name] = number;
    } else if (name === 'tags')
      body.tags = typed
        .split(',')
        .map((/** @type {string} */ tag) => tag.trim())
        .filter(Boolean);
    else if (name === 'symbol') {
      if (typed === '') errors.push({ field: name, message: t.required });
      body.symbol = typed.toUpperCase();
    } else if (typed !== '' || name === 'traded_on') body[name] = typed;
  }
  return { body, wrong: errors.length ? { errors, message: '', retryS: null } : null };
}
