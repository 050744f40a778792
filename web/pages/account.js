// Who is logged in and until when; password, export, and the two ways to delete.
import { call, changePassword, eraseAccount, logOut, serverNow, session } from '../api.js';
import { attempt, field, onSubmit, problemPlace } from '../form.js';
import { day, minute, span } from '../format.js';
import { save } from '../table.js';
import { text } from '../text.js';
import { button, h, put, say } from '../view.js';

const t = text.account;
export const title = t.title;

export function show({ main, go, announce }) {
  main.className = 'narrow account-page';
  const user = session.user;
  if (!user) return;
  const until = session.expires_at;
  const left = until ? span((Date.parse(until) - serverNow()) / 1000) : '';
  put(main,
    h('h1', null, t.title),
    h('section', { class: 'panel' },
      h('p', { class: 'lead' }, user.name ? `${user.name} · ` : '', user.email),
      until && h('p', { class: 'muted' }, t.until(`${day(until)}, ${minute(until)}`, left)),
      button(t.logOut, async () => { await logOut().catch(() => {}); go('/'); announce(t.loggedOut); }), everywhere(go, announce)),
    passwordForm(user.email, announce), exportPart(), deletePart(), erasePart(user.email, go, announce),
    h('section', null, h('h2', null, t.stored), h('ul', null, t.storedLines.map((line) => h('li', null, line)))));
}

function everywhere(go, announce) {
  const problem = problemPlace();
  return [' ', button(t.everywhere, () => attempt([], problem, async () => { await logOut(true); go('/'); announce(t.loggedOutEverywhere); })), problem];
}

function passwordForm(email, announce) {
  const current = field({ name: 'current_password', label: t.current, secret: true, autocomplete: 'current-password', required: true });
  const next = field({ name: 'new_password', label: t.next, secret: true, autocomplete: 'new-password', hint: text.login.passwordHint, required: true });
  const fields = [current, next];
  const problem = problemPlace();
  const done = h('p', { class: 'good', role: 'status' });
  const form = h('form', { method: 'post', novalidate: true },
    // Lets a password manager know whose password changes.
    h('input', { type: 'text', name: 'username', autocomplete: 'username', value: email, readonly: true, class: 'unseen', tabindex: '-1', 'aria-hidden': 'true' }),
    fields.map(({ node }) => node), problem, h('button', { type: 'submit' }, t.change), done);
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
  return h('section', null, h('h2', null, t.export), h('p', { class: 'muted' }, t.exportWhy), problem,
    // The document as it came: every digit stays.
    button(t.exportJson, () => attempt([], problem, async () =>
      save('bhav-export.json', await call('/api/portfolio/export', { timeoutMs: 120_000, raw: true }), 'application/json'))));
}

/** A button that asks once more before it acts. */
function asksAgain(label, question, sure, run) {
  const box = h('div', null);
  const draw = () => put(box, button(label, () => {
    put(box, h('p', { role: 'alert' }, question), button(sure, run, { class: 'danger' }), ' ', button(t.cancel, () => { draw(); box.querySelector('button')?.focus(); }));
    box.querySelector('button')?.focus();
  }));
  draw();
  return { box, draw };
}

function deletePart() {
  const problem = problemPlace();
  const done = h('p', { class: 'good', role: 'status' });
  const asked = asksAgain(t.deleteData, t.deleteSure, t.deleteYes, () => attempt([], problem, async () => {
    const { deleted } = await call('/api/portfolio/data', { method: 'DELETE' });
    say(done, t.deleted(deleted.holdings, deleted.positions, deleted.pnl_snapshots));
    asked.draw();
  }));
  return h('section', null, h('h2', null, t.deleteTitle), h('p', { class: 'muted' }, t.deleteWhy), asked.box, problem, done);
}

function erasePart(email, go, announce) {
  const mail = field({ name: 'confirm', label: t.typeEmail, autocomplete: 'off', required: true });
  const password = field({ name: 'password', label: text.login.password, secret: true, autocomplete: 'current-password', required: true });
  const problem = problemPlace();
  const form = h('form', { method: 'post', novalidate: true }, mail.node, password.node, problem, h('button', { type: 'submit', class: 'danger' }, t.eraseYes));
  onSubmit(form, [mail, password], problem, async () => {
    if (mail.input.value.trim().toLowerCase() !== email.toLowerCase()) { mail.fail(t.notEmail); mail.input.focus(); return; }
    try {
      await eraseAccount(password.input.value);
      go('/');
      announce(t.erased);
    } finally {
      password.input.value = '';
    }
  });
  return h('section', { class: 'danger-zone' }, h('h2', null, t.erase), h('p', { class: 'muted' }, t.eraseWhy), h('details', null, h('summary', null, t.eraseOpen), form));
}
