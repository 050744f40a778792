// A correction before it is applied: what is known stands there, and what only the person knows is asked.
import { call } from '../data/api.js';
import { correctionForm as own } from '../text/correction-form.js';
import { corrections as t } from '../text/corrections.js';
import { ledger } from '../text/ledger.js';
import { field, onSubmit, problemPlace } from './form.js';
import { button, h, put } from './view.js';

/** @typedef {import('../data/correction.js').Correction} Correction */

const DATES = ['ex_date', 'date', 'entered', 'record_date', 'allotment_date'];
const NUMBERS = ['numerator', 'denominator', 'quantity', 'price', 'cost', 'cost_percent', 'cash'];
/** What tells which share of which account it is of: it is said above the fields. */
const FIXED = ['kind', 'account'];
/** What may be said besides what is asked. @type {{ [kind: string]: string[] }} */
const MORE = { opening_lot: ['how'], transfer: ['to'], split: ['new_isin'] };
const CHOICES = /** @type {const} */ (['how', 'class', 'what']);

/**
 * Asks for what is missing, and applies the correction; whether it was applied.
 * @param {Correction} correction
 * @param {string | null} [name] of the share
 * @returns {Promise<boolean>}
 */
export function apply(correction, name) {
  const dialog = /** @type {HTMLDialogElement} */ (h('dialog', { 'aria-label': own.title }));
  document.body.append(dialog);
  return new Promise((resolve) => {
    let isApplied = false;
    const fields = fieldsOf(correction);
    const problem = problemPlace();
    const form = h('form', { method: 'post', novalidate: true });
    put(
      form,
      h('h2', null, t.kinds[correction.kind] ?? correction.kind),
      h('p', null, whoseOf(correction, name)),
      h('p', { class: 'small' }, own.why),
      h('div', { class: 'grid-fields' }, fields.map(({ node }) => node)),
      problem,
      h(
        'p',
        { class: 'actions' },
        h('button', { type: 'submit', class: 'primary' }, own.apply),
        button(own.leave, () => dialog.close()),
      ),
    );
    onSubmit(form, fields, problem, async () => {
      const id = `${correction.kind}-${Math.random().toString(36).slice(2)}`;
      await call(`/api/trades/corrections/${id}`, { method: 'PUT', body: bodyOf(correction, fields) });
      isApplied = true;
      dialog.close();
    });
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(isApplied);
    });
    put(dialog, form);
    dialog.showModal();
    fields.find(({ input }) => input.value === '')?.input.focus();
  });
}

/** Of which share and account. @param {Correction} of @param {string | null | undefined} name */
const whoseOf = (of, name) =>
  [name ?? of.symbol, of.isin, of.account && ledger.account(of.account)].filter(Boolean).join(' · ');

/** @param {Correction} correction */
function fieldsOf(correction) {
  const asked = Object.keys(correction).filter((member) => !FIXED.includes(member));
  const known = asked.filter((member) => !(member === 'isin' && correction.isin) && member !== 'symbol');
  const more = (MORE[correction.kind] ?? []).filter((member) => !asked.includes(member));
  return [...known, ...more].map((name) => fieldOf(name, correction[name] ?? null, more.includes(name)));
}

/** @param {string} name @param {string | number | null} value @param {boolean} isOptional */
function fieldOf(name, value, isOptional) {
  const plain = t.members[name] ?? name;
  const choice = CHOICES.find((one) => one === name);
  const label = isOptional && !choice ? own.ifAny(plain) : plain;
  if (choice) {
    const control = h(
      'select',
      { name },
      Object.entries(t[choice]).map(([code, words]) => h('option', { value: code }, words)),
    );
    control.value = value ?? Object.keys(t[choice])[0];
    return field({ name, label, control });
  }
  const type = DATES.includes(name) ? 'date' : 'text';
  const inputmode = NUMBERS.includes(name) ? 'decimal' : null;
  return field({ name, label, type, inputmode, value: value ?? '', autocomplete: 'off', hint: own.hints[name] });
}

/** The correction with what was typed. @param {Correction} correction @param {import('./form.js').Field[]} fields */
function bodyOf(correction, fields) {
  const body = { ...correction };
  const errors = [];
  for (const { name, input } of fields) {
    const typed = input.value.trim();
    const isAsked = name in correction;
    if (typed === '' && !isAsked) continue;
    // People type 1,23,456.50.
    const number = Number(typed.replaceAll(',', ''));
    if (typed === '') errors.push({ field: name, message: own.required });
    else if (NUMBERS.includes(name) && !Number.isFinite(number)) errors.push({ field: name, message: own.notNumber });
    body[name] = NUMBERS.includes(name) ? number : typed;
  }
  if (errors.length) throw { errors, message: '', retryS: null };
  return body;
}
