// Who is logged in and until when; password, export, and the two ways to delete.
import { askSession, call, logOut, serverNow, session } from '../data/api.js';
import { save } from '../data/csv.js';
import { day, minute, span } from '../data/format.js';
import { appearance } from '../parts/appearance.js';
import { ask } from '../parts/dialog.js';
import { attempt, field, onSubmit, problemPlace } from '../parts/form.js';
import { keysPart } from '../parts/keys.js';
import { button, h, put, say } from '../parts/view.js';
import { account as t } from '../text/account.js';
import { login } from '../text/login.js';

export const title = t.title;

async function changePassword(current, next) {
  const body = { current_password: current, new_password: next, cookie: true };
  await call('/api/auth/password', { method: 'POST', body });
  await askSession();
}

async function eraseAccount(password) {
  await call('/api/auth/account', { method: 'DELETE', body: { password } });
  await askSession();
}

export function show({ main, go, announce }) {
  main.className = 'narrow account-page';
  const user = session.user;
  if (!user) return;
  const until = session.expires_at;
  const left = until ? span((Date.parse(until) - serverNow()) / 1000) : '';
  put(
    main,
    h('h1', null, t.title),
    h(
      'section',
      { class: 'panel' },
      h('p', { class: 'lead' }, user.name ? `${user.name} · ` : '', user.email),
      until && h('p', { class: 'muted' }, t.until(`${day(until)}, ${minute(until)}`, left)),
      button(t.logOut, async () => {
        await logOut().catch(() => {});
        go('/');
        announce(t.loggedOut);
      }),
      everywhere(go, announce),
    ),
    appearance(),
    passwordForm(user.email, announce),
    keysPart(announce),
    exportPart(),
    deletePart(),
    erasePart(user.email, go, announce),
    h(
      'section',
      null,
      h('h2', null, t.stored),
      h(
        'ul',
        null,
        t.storedLines.map((line) => h('li', null, line)),
      ),
    ),
  );
}

function everywhere(go, announce) {
  const problem = problemPlace();
  return [
    ' ',
    button(t.everywhere, () =>
      attempt([], problem, async () => {
        await logOut(true);
        go('/');
        announce(t.loggedOutEverywhere);
      }),
    ),
    problem,
  ];
}

function passwordForm(email, announce) {
  const current = field({
    name: 'current_password',
    label: t.current,
    secret: true,
    autocomplete: 'current-password',
    required: true,
  });
  const next = field({
    name: 'new_password',
    label: t.next,
    secret: true,
    autocomplete: 'new-password',
    hint: login.passwordHint,
    required: true,
  });
  const fields = [current, next];
  const problem = problemPlace();
  const done = h('p', { class: 'good', role: 'status' });
  const form = h(
    'form',
    { method: 'post', novalidate: true },
    // Lets a password manager know whose password changes.
    h('input', {
      type: 'text',
      name: 'username',
      autocomplete: 'username',
      value: email,
      readonly: true,
      class: 'unseen',
      tabindex: '-1',
      'aria-hidden': 'true',
    }),
    fields.map(({ node }) => node),
    problem,
    h('button', { type: 'submit' }, t.change),
    done,
  );
  onSubmit(form, fields, problem, async () => {
    try {
      await changePassword(current.input.value, next.input.value);
      say(done, t.changed);
      announce(t.changed);
    } finally {
      for (const one of fields) one.input.value = '';
    }
  });
  return h('section', null, h('h2', null, t.password), form);
}

function exportPart() {
  const problem = problemPlace();
  return h(
    'section',
    null,
    h('h2', null, t.export),
    h('p', { class: 'muted' }, t.exportWhy),
    problem,
    // The document as it came: every digit stays.
    button(t.exportJson, () =>
      attempt([], problem, async () =>
        save(
          'bhav-export.json',
          await call('/api/portfolio/export', { timeoutMs: 120_000, raw: true }),
          'application/json',
        ),
      ),
    ),
  );
}

function deletePart() {
  const problem = problemPlace();
  const done = h('p', { class: 'good', role: 'status' });
  const act = button(t.deleteData, () =>
    attempt([], problem, async () => {
      if (!(await ask(t.deleteSure, t.deleteYes, t.cancel))) return;
      const { deleted } = await call('/api/portfolio/data', { method: 'DELETE' });
      say(done, t.deleted(deleted.holdings, deleted.positions, deleted.pnl_snapshots));
    }),
  );
  return h('section', null, h('h2', null, t.deleteTitle), h('p', { class: 'muted' }, t.deleteWhy), act, problem, done);
}

function erasePart(email, go, announce) {
  const mail = field({ name: 'confirm', label: t.typeEmail, autocomplete: 'off', required: true });
  const password = field({
    name: 'password',
    label: login.password,
    secret: true,
    autocomplete: 'current-password',
    required: true,
  });
  const problem = problemPlace();
  const dialog = /** @type {HTMLDialogElement} */ (h('dialog', { 'aria-label': t.erase }));
  const form = h(
    'form',
    { method: 'post', novalidate: true },
    h('h2', null, t.erase),
    h('p', { class: 'muted' }, t.eraseWhy),
    mail.node,
    password.node,
    problem,
    h(
      'p',
      { class: 'actions' },
      button(t.cancel, () => dialog.close()),
      h('button', { type: 'submit', class: 'danger' }, t.eraseYes),
    ),
  );
  put(dialog, form);
  onSubmit(form, [mail, password], problem, async () => {
    if (mail.input.value.trim().toLowerCase() !== email.toLowerCase()) {
      mail.fail(t.notEmail);
      mail.input.focus();
      return;
    }
    try {
      await eraseAccount(password.input.value);
      dialog.close();
      go('/');
      announce(t.erased);
    } finally {
      password.input.value = '';
    }
  });
  return h(
    'section',
    { class: 'danger-zone' },
    h('h2', null, t.erase),
    h('p', { class: 'muted' }, t.eraseWhy),
    button(t.eraseOpen, () => dialog.showModal(), { class: 'danger' }),
    dialog,
  );
}
