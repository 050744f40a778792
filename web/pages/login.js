// Log in or create an account. On a private page it stands in that page's place.
import { Problem, askSession, call, onSession, session } from '../data/api.js';
import { appearance } from '../parts/appearance.js';
import { attempt, field, onSubmit, problemPlace } from '../parts/form.js';
import { attr, button, h, put, say } from '../parts/view.js';
import { login as t } from '../text/login.js';

export const title = t.title;

/** Kept between log in and register, so that nothing is asked for twice. */
let email = '';

/** After a login: the browser has to send the cookie that it got. */
async function expectUser() {
  await askSession();
  if (session.user) return;
  throw new Problem(401, { code: 'login_not_kept', detail: session.refused ?? t.notKept }, null);
}

/** @param {string} email @param {string} password */
async function logIn(email, password) {
  await call('/api/auth/login', { method: 'POST', body: { email, password, cookie: true } });
  await expectUser();
}

/** @param {string} email @param {string} password @param {string} name */
async function register(email, password, name) {
  const body = { email, password, cookie: true, ...(name ? { name } : {}) };
  await call('/api/auth/register', { method: 'POST', body });
  await expectUser();
}

/** @param {Context} context */
export function show({ main, path, go }) {
  main.className = 'narrow';
  let isNew = false;
  const draw = () => drawForm(main, { path, isNew, go, change });
  const change = () => {
    isNew = !isNew;
    draw();
    main.querySelector('input')?.focus();
  };
  draw();
  if (session.user && path === '/login') {
    put(
      main,
      h('h1', null, t.title),
      h('p', { class: 'lead' }),
      h('p', null, h('a', { class: 'button primary', href: '/portfolio' }, t.toPortfolio)),
    );
    say(main.querySelector('.lead'), t.already(session.user.email));
    return undefined;
  }
  // Whether accounts can be made is known with the session's first answer.
  const state = () => `${session.known} ${session.registration} ${session.refused}`;
  let was = state();
  return onSession(() => {
    const is = state();
    if (is === was || session.user) return;
    was = is;
    if (!main.contains(document.activeElement) || document.activeElement === main) draw();
  });
}

/**
 * @typedef {object} Drawn
 * @property {string} path
 * @property {boolean} isNew whether an account is made
 * @property {(path: string) => void} go
 * @property {() => void} change to the other form
 */

/** @param {HTMLElement} main @param {Drawn} drawn */
function drawForm(main, { path, isNew, go, change }) {
  put(
    main,
    h('h1', null, isNew ? t.toCreate : t.logIn),
    path !== '/login' && h('p', { class: 'lead' }, t.needed),
    !isNew && guestsOf(() => path === '/login' && go('/portfolio')),
    session.refused && h('p', { class: 'problem', role: 'alert' }, session.refused),
    // On a private page the frame draws that page now; from here the portfolio is next.
    formOf(isNew, () => path === '/login' && go('/portfolio')),
    otherOf(isNew, change),
    !isNew && h('p', { class: 'muted' }, t.forgot),
    ['/login', '/account'].includes(path) && appearance(),
  );
}

/** How long a demo's account may still be in the making, and how often it is tried. */
const MADE_WITHIN_MS = 15_000;
const TRY_MS = 500;

/** A demo has accounts that everybody may enter: one press, and nothing to type. @param {() => void} done */
function guestsOf(done) {
  const guests = /** @type {HTMLElement[]} */ ([...document.querySelectorAll('#guests li')]);
  if (guests.length === 0) return null;
  const problem = problemPlace();
  /** @param {HTMLElement} guest @param {Element} opener */
  const enter = (guest, opener) =>
    attempt([], problem, async () => {
      if (opener.getAttribute('aria-busy')) return;
      attr(opener, 'aria-busy', 'true');
      await enterOnceMade(guest.dataset, performance.now() + MADE_WITHIN_MS).finally(() =>
        attr(opener, 'aria-busy', null),
      );
      done();
    });
  const entries = guests.map((guest) => {
    const opener = button(t.lookAround(guest.dataset.name ?? ''), () => enter(guest, opener), { class: 'primary' });
    return h('p', null, opener, ' ', h('span', { class: 'muted' }, guest.textContent));
  });
  return h('section', { class: 'guests', 'aria-label': t.guests }, entries, h('p', { class: 'muted' }, t.madeUp), problem);
}

/** @param {DOMStringMap} account @param {number} late when it is tried no more */
async function enterOnceMade({ email = '', password = '' }, late) {
  for (;;) {
    try {
      return await logIn(email, password);
    } catch (refused) {
      if (refused.status !== 401 || refused.code === 'login_not_kept' || performance.now() > late) throw refused;
    }
    await new Promise((resolve) => setTimeout(resolve, TRY_MS));
  }
}

/** @param {boolean} isNew @param {() => void} done */
function formOf(isNew, done) {
  const mail = field({
    name: 'email',
    label: t.email,
    type: 'email',
    autocomplete: 'username',
    value: email,
    required: true,
  });
  mail.input.addEventListener('input', () => {
    email = mail.input.value;
  });
  const password = field({
    name: 'password',
    label: t.password,
    secret: true,
    required: true,
    autocomplete: isNew ? 'new-password' : 'current-password',
    hint: isNew ? t.passwordHint : undefined,
  });
  const name = field({ name: 'name', label: t.name, autocomplete: 'name' });
  const fields = isNew ? [mail, password, name] : [mail, password];
  const problem = problemPlace();
  const form = h(
    'form',
    { method: 'post', novalidate: true },
    fields.map(({ node }) => node),
    problem,
    h('button', { type: 'submit', class: 'primary' }, isNew ? t.create : t.logIn),
  );
  onSubmit(form, fields, problem, async () => {
    try {
      if (isNew) await register(mail.input.value, password.input.value, name.input.value.trim());
      else await logIn(mail.input.value, password.input.value);
      email = '';
      done();
    } finally {
      password.input.value = '';
    }
  });
  return form;
}

/** The way to the other form, once it is known whether there is one. @param {boolean} isNew @param {() => void} change */
function otherOf(isNew, change) {
  if (!session.known) return h('p', null, '\u00a0');
  if (session.registration !== 'open' && !isNew) return h('p', { class: 'muted' }, t.closed);
  return h('p', null, isNew ? t.have : t.new, ' ', button(isNew ? t.logIn : t.toCreate, change, { class: 'link' }));
}
