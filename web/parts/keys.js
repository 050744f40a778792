// API keys on the account page: made, shown once, listed, revoked; and how an assistant uses one.
import { call, serverNow } from '../data/api.js';
import { day, minute } from '../data/format.js';
import { keys as t } from '../text/keys.js';
import { ask } from './dialog.js';
import { attempt, field, onSubmit, problemPlace } from './form.js';
import { button, h, put, say } from './view.js';

const DAY_MS = 86_400_000;

/** The section of the page. */
export function keysPart(announce) {
  const list = h('div', null);
  const problem = problemPlace();
  const made = h('div', { role: 'status' });
  const draw = async () => {
    const { keys } = await call('/api/keys');
    put(list, keys.length === 0 ? h('p', { class: 'muted' }, t.none) : keys.map((key) => entry(key, problem, draw, announce)));
  };
  attempt([], problem, draw);
  return h(
    'section',
    null,
    h('h2', null, t.title),
    h('p', { class: 'muted' }, t.why),
    problem,
    list,
    made,
    h('details', null, h('summary', null, t.open), form(made, draw, announce)),
    assistant(),
  );
}

function entry(key, problem, draw, announce) {
  const at = (time) => `${day(time)}, ${minute(time)}`;
  const isOver = key.expires_at !== null && Date.parse(key.expires_at) <= serverNow();
  const used = key.last_used_at ? t.used(at(key.last_used_at), key.last_used_from) : t.unused;
  const end = key.expires_at ? (isOver ? t.ended : t.ends)(at(key.expires_at)) : t.endless;
  const revoke = () =>
    attempt([], problem, async () => {
      if (!(await ask(t.revokeSure(key.name), t.revokeYes, t.keep))) return;
      await call(`/api/keys/${key.id}`, { method: 'DELETE' });
      announce(t.revoked(key.name));
      await draw();
    });
  return h(
    'div',
    { class: 'panel' },
    h('p', { class: 'lead' }, key.name),
    h('p', { class: 'muted' }, key.scopes.join(' · ')),
    h('p', { class: 'muted' }, `bhav_${key.id}_… · ${t.made(at(key.created_at))} · ${used} · ${end}`),
    button(t.revoke, revoke),
  );
}

/** A box for each scope; the fault of all is below them. */
function scopesField() {
  const boxes = t.scopes.map(([scope, words]) => h('input', { type: 'checkbox', value: scope, 'aria-label': words }));
  const fault = h('p', { class: 'field-error' });
  const labels = boxes.map((box, at) => h('label', null, box, ` ${t.scopes[at][1]}`));
  return {
    node: h('fieldset', { class: 'field' }, h('legend', null, t.may), labels, fault),
    input: boxes[0],
    name: 'scopes',
    fail: (words) => void say(fault, words),
    chosen: () => boxes.filter((box) => box.checked).map((box) => box.value),
  };
}

function form(made, draw, announce) {
  const name = field({ name: 'name', label: t.name, autocomplete: 'off', maxlength: '60', hint: t.nameHint, required: true });
  const options = t.spans.map(([days, words]) => h('option', { value: String(days) }, words));
  const end = field({ name: 'expires_at', label: t.end, control: h('select', { name: 'expires_at' }, options) });
  const scopes = scopesField();
  const password = field({
    name: 'current_password',
    label: t.password,
    secret: true,
    autocomplete: 'current-password',
    required: true,
  });
  const fields = [name, scopes, end, password];
  const problem = problemPlace();
  const submit = h('button', { type: 'submit' }, t.make);
  const node = h('form', { method: 'post', novalidate: true }, fields.map((one) => one.node), problem, submit);
  onSubmit(node, fields, problem, async () => {
    const days = Number(end.input.value);
    const body = {
      name: name.input.value,
      scopes: scopes.chosen(),
      current_password: password.input.value,
      ...(days > 0 ? { expires_at: new Date(serverNow() + days * DAY_MS).toISOString() } : {}),
    };
    try {
      const { key } = /** @type {any} */ (await call('/api/keys', { method: 'POST', body }));
      show(made, key, announce);
      node.reset();
      await draw();
    } finally {
      password.input.value = '';
    }
  });
  return node;
}

/** A text in a field, and a button that copies it. */
function copyable(label, text) {
  const box = h('input', {
    type: 'text',
    readonly: true,
    value: text,
    'aria-label': label,
    spellcheck: 'false',
    autocomplete: 'off',
    size: String(text.length),
  });
  const said = h('p', { class: 'good', role: 'status' });
  const copy = button(t.copy, async () => {
    box.select();
    try {
      await navigator.clipboard.writeText(text);
      say(said, t.copied);
    } catch {
      say(said, t.select);
    }
  });
  return { box, copy, said };
}

/** The key, this once. */
function show(made, key, announce) {
  const { box, copy, said } = copyable(t.key, key);
  const done = button(t.hide, () => put(made));
  put(made, h('div', { class: 'panel' }, h('p', { class: 'lead' }, t.once), box, ' ', copy, ' ', done, said));
  announce(t.once);
  copy.focus();
}

/** How an assistant is given a key. */
function assistant() {
  const address = `${location.origin}/mcp`;
  const { box, copy, said } = copyable(t.assistantLine, t.assistantCommand(address));
  return h(
    'details',
    null,
    h('summary', null, t.assistant),
    h('p', null, t.assistantWhy(address)),
    h('p', { class: 'muted' }, t.assistantMay),
    h('p', null, `${t.assistantLine}:`),
    box,
    ' ',
    copy,
    said,
  );
}
