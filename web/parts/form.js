// Fields with their own errors, and what a refused form says.
import { text } from '../text.js';
import { attr, button, h, put, say, uid } from './view.js';

/** A labelled field with room for its error. @param {any} wanted */
export function field({ name, label, hint, secret, type, control, ...more }) {
  const id = uid(name);
  const input =
    control ??
    h(type === 'textarea' ? 'textarea' : 'input', {
      name,
      type: type === 'textarea' ? null : secret ? 'password' : (type ?? 'text'),
      spellcheck: 'false',
      autocapitalize: 'off',
      ...more,
    });
  input.id = id;
  const error = h('p', { class: 'field-error', id: `${id}-error` });
  const about = hint ? h('p', { class: 'hint', id: `${id}-hint` }, hint) : null;
  attr(input, 'aria-describedby', [hint && `${id}-hint`, `${id}-error`].filter(Boolean).join(' '));
  const see =
    secret &&
    button(
      text.form.show,
      () => {
        const shown = input.type === 'text';
        input.type = shown ? 'password' : 'text';
        attr(see, 'aria-pressed', String(!shown));
      },
      { class: 'quiet see', 'aria-pressed': 'false', 'aria-controls': id, 'aria-describedby': `${id}-label` },
    );
  const node = h(
    'div',
    { class: 'field' },
    h('label', { for: id, id: `${id}-label` }, label),
    h('div', { class: 'with' }, input, see || null),
    about,
    error,
  );
  return {
    node,
    input,
    name,
    fail(words) {
      say(error, words);
      attr(input, 'aria-invalid', words ? 'true' : null);
    },
  };
}

/** @typedef {ReturnType<typeof field>} Field */

/** Shows a refusal: each error under its field, the rest above the form; focus goes to the first. */
function refuse(fields, place, problem) {
  /** @type {Field | null} */
  let first = null;
  const rest = [];
  for (const { field: name, message } of problem.errors) {
    const one = fields.find((each) => each.name === name);
    if (one) one.fail(message);
    else rest.push(message);
    first ??= one ?? null;
  }
  const words = first && rest.length === 0 ? '' : [problem.message, ...rest].join(' ');
  place.hidden = words === '';
  say(place, words);
  if (problem.retryS) countDown(place, problem.message, problem.retryS);
  if (first) first.input.focus();
}

/** "Try again in 47 s", counting down. */
function countDown(place, words, seconds) {
  const ends = performance.now() + seconds * 1000;
  const count = h('span', { 'aria-hidden': 'true' });
  put(place, words, ' ', count, h('span', { class: 'unseen' }, text.form.again(seconds)));
  const timer = setInterval(() => {
    const left = Math.ceil((ends - performance.now()) / 1000);
    if (left > 0 && count.isConnected) say(count, text.form.again(left));
    else {
      clearInterval(timer);
      if (count.isConnected) {
        put(place);
        place.hidden = true;
      }
    }
  }, 250);
}

/** Where a form says what went wrong as a whole. */
export const problemPlace = () => h('p', { class: 'problem', role: 'alert', hidden: true });

/** Does something that may be refused. */
export async function attempt(fields, place, act) {
  place.hidden = true;
  for (const one of fields) one.fail('');
  try {
    await act();
  } catch (problem) {
    refuse(fields, place, problem);
  }
}

/** Runs what a form sends, with its button off meanwhile. */
export function onSubmit(form, fields, place, send) {
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (form.getAttribute('aria-busy') === 'true') return;
    const busy = (is) => {
      attr(form, 'aria-busy', is);
      for (const one of form.querySelectorAll('button[type=submit]')) attr(one, 'aria-disabled', is);
    };
    busy('true');
    await attempt(fields, place, send);
    busy(null);
  });
}
