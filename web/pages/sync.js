// Syncs a broker. Key, secret and code are sent once and kept nowhere.
import { call, session } from '../data/api.js';
import { simulated } from '../parts/figures.js';
import { field, onSubmit, problemPlace } from '../parts/form.js';
import { syncReport } from '../parts/report.js';
import { attr, button, h, put, say } from '../parts/view.js';
import { sync as t } from '../text/sync.js';

/** @typedef {'a' | 'b'} Which */

/** @type {(path: string) => Which} */
const whichOf = (path) => (path.endsWith('/b') ? 'b' : 'a');
/** @param {string} path */
export const title = (path) => t.sync[whichOf(path)];

const BROKERS = {
  a: { path: '/api/portfolio/sync', code: 'request_token', back: '/return/a', demo: ['simkeya-1', 'simsecreta'] },
  b: {
    path: '/api/portfolio/brokerb-sync',
    code: 'api_session',
    back: '/return/b',
    demo: ['sim+key=b&1-1', 'simsecretb'],
  },
};
const WAIT_MS = 120_000;
// How long after its own "Open the broker's login" a waiting page takes a code: a login with an OTP takes some minutes.
const TAKEN_MS = 600_000;

/** The code that the broker's login left behind `#`; the address loses it at once. */
function takeCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get('code') ?? '';
  if (location.hash) history.replaceState(null, '', location.pathname);
  return code;
}

/** @typedef {ReturnType<typeof nodesOf>} Nodes */

/** @param {Context} context */
export function show({ main, path, announce }) {
  main.className = 'narrow sync';
  const which = whichOf(path);
  const brought = takeCode();
  /** @type {AbortController | null} */
  let asking = null;
  const nodes = nodesOf(which, brought, () => asking?.abort());
  const { key, form, fields, problem } = nodes;
  const loginPage = session.login_pages?.[which];
  const drawLogin = () => {
    const typed = key.input.value.trim();
    attr(nodes.login, 'href', loginPage && typed ? loginPage + encodeURIComponent(typed) : null);
    attr(nodes.login, 'aria-disabled', loginPage && typed ? null : 'true');
  };
  key.input.addEventListener('input', drawLogin);
  drawLogin();
  lay(main, nodes, which, loginPage, drawLogin);
  const leaveTabs = shareCode(nodes, which, brought);

  /** Neither the page nor the browser keeps them. */
  const empty = () => {
    for (const one of fields) {
      one.input.value = '';
      one.input.removeAttribute('value');
    }
    say(nodes.came, '');
  };
  onSubmit(form, fields, problem, async () => {
    const { signal } = (asking = new AbortController());
    nodes.cancel.hidden = false;
    say(nodes.waiting, t.asking[which]);
    try {
      const body = bodyOf(nodes, which);
      const report = await call(BROKERS[which].path, { method: 'POST', body, signal, timeoutMs: WAIT_MS });
      put(nodes.result, syncReport(report));
      form.remove();
      nodes.lead.remove();
      empty();
      nodes.result.querySelector('h2')?.focus();
    } catch (failed) {
      if (failed.code === 'broker_user_changed') nodes.replace.node.hidden = false;
      if (failed.code === 'no_holdings_sent') nodes.emptied.node.hidden = false;
      // What can pass is no reason to have all of it typed again; the fields are the user's own page.
      if (!signal.aborted && !failed.passes) empty();
      if (!signal.aborted) throw failed;
      announce(t.cancelled);
    } finally {
      nodes.cancel.hidden = true;
      say(nodes.waiting, '');
      drawLogin();
    }
  });
  return () => {
    leaveTabs();
    asking?.abort();
    empty();
  };
}

/** @param {Which} which @param {string} brought @param {() => void} abort */
function nodesOf(which, brought, abort) {
  const off = { autocomplete: 'off', secret: true, required: true };
  const name = BROKERS[which].code;
  const key = field({ name: 'api_key', label: t.key, ...off });
  const secret = field({ name: 'api_secret', label: t.secret, ...off });
  const code = field({ name, label: t.code[which], hint: t.codeHint, ...off, value: brought });
  return {
    key,
    secret,
    code,
    fields: [key, secret, code],
    came: h('p', { class: 'good', role: 'status' }, brought && t.codeCame),
    // Whose login began in another tab reads this first.
    back: h('p', { class: 'lead good', role: 'status', hidden: true }),
    problem: problemPlace(),
    waiting: h('p', { class: 'muted', role: 'status' }),
    result: h('section', { 'aria-live': 'polite' }),
    login: h('a', { class: 'button', target: '_blank', rel: 'noreferrer noopener' }, t.openLogin),
    // Shown once the broker has said that the code is of somebody else.
    replace: consent('replace_broker_user', t.replace),
    // Shown once the broker has named no holdings where there are some.
    emptied: consent('replace_with_none', t.replaceWithNone),
    cancel: button(t.cancel, abort, { class: 'quiet', hidden: true }),
    submit: h('button', { type: 'submit', class: 'primary' }, t.sync[which]),
    lead: h('p', { class: 'lead' }, t.who[which]),
    form: h('form', { method: 'post', autocomplete: 'off', novalidate: true }),
  };
}

/** What must be said before the broker's answer replaces what is there. @param {string} name @param {string} words */
function consent(name, words) {
  const box = h('input', { type: 'checkbox', name });
  return { box, node: h('p', { hidden: true }, h('label', null, box, ' ', words)) };
}

/**
 * Lays out the page.
 * @param {HTMLElement} main
 * @param {Nodes} nodes
 * @param {Which} which
 * @param {string | undefined} loginPage
 * @param {() => void} drawLogin
 */
function lay(main, nodes, which, loginPage, drawLogin) {
  const { key, secret, code, came, problem, replace, emptied, submit, cancel, waiting, form, lead, result } = nodes;
  put(
    form,
    h(
      'ol',
      { class: 'steps' },
      h(
        'li',
        null,
        h('h2', null, t.stepKey),
        // A broker's own login is behind TLS; the simulator's is not, and its app is no secret.
        loginPage?.startsWith('http:') && demoOf(nodes, which, drawLogin),
        key.node,
        nodes.login,
        h('p', { class: 'hint' }, t.register, ' '),
        addressOf(which),
      ),
      h('li', null, h('h2', null, t.stepCode), code.node, came),
      h('li', null, h('h2', null, t.stepSync), secret.node, h('p', { class: 'promise' }, t.promise)),
    ),
    problem,
    replace.node,
    emptied.node,
    h('p', { class: 'actions' }, submit, ' ', cancel),
    waiting,
  );
  put(
    main,
    h('p', { class: 'back' }, h('a', { href: '/portfolio' }, t.back)),
    h('h1', null, t.sync[which]),
    nodes.back,
    lead,
    form,
    result,
  );
}

/** The simulator's app, which fills itself in. @param {Nodes} nodes @param {Which} which @param {() => void} drawLogin */
function demoOf({ key, secret, code, submit, login }, which, drawLogin) {
  const [demoKey, demoSecret] = BROKERS[which].demo;
  const fillIn = () => {
    key.input.value = demoKey;
    secret.input.value = demoSecret;
    drawLogin();
    (code.input.value ? submit : login).focus();
  };
  return h(
    'p',
    { class: 'simulated-app' },
    simulated(true),
    ' ',
    t.demo(demoKey, demoSecret),
    ' ',
    button(t.fillIn, fillIn, { class: 'link' }),
  );
}

/** The way back that is registered at the broker, and a button that copies it. @param {Which} which */
function addressOf(which) {
  const address = `${location.origin}${BROKERS[which].back}`;
  const copied = h('span', { role: 'status', class: 'muted' });
  const copy = () => {
    navigator.clipboard?.writeText(address).then(
      () => say(copied, t.copied),
      () => say(copied, t.notCopied),
    );
  };
  return h(
    'p',
    { class: 'address' },
    h('code', null, address),
    ' ',
    button(t.copy, copy, { class: 'quiet' }),
    ' ',
    copied,
  );
}

/**
 * The login ends in another tab; the one where it began gets the code too. Any page can bring a code of its own to the
 * way back, so this page takes one only while it waits, and the last one, which is the one of the person's own login.
 * Returns what ends it.
 * @param {Nodes} nodes
 * @param {Which} which
 * @param {string} brought
 */
function shareCode({ login, form, code, came, back, submit }, which, brought) {
  let openedMs = -Infinity;
  for (const kind of ['click', 'auxclick'])
    login.addEventListener(kind, () => {
      if (login.hasAttribute('href')) openedMs = performance.now();
    });
  const tabs = new BroadcastChannel(`code ${which}`);
  const taken = new BroadcastChannel(`taken ${which}`);
  tabs.onmessage = ({ data }) => {
    if (!form.isConnected || performance.now() - openedMs > TAKEN_MS) return;
    code.input.value = data;
    say(came, t.codeCame);
    taken.postMessage('');
    // Whoever comes back to this tab sees what is next.
    submit.classList.add('large');
    submit.scrollIntoView({ block: 'center' });
  };
  // Who comes back in a new tab is told that the first one has it all.
  taken.onmessage = () => {
    if (!brought || !form.isConnected) return;
    say(back, t.goBack);
    back.hidden = false;
  };
  if (brought) tabs.postMessage(brought);
  return () => {
    tabs.close();
    taken.close();
  };
}

/** What is sent. @param {Nodes} nodes @param {Which} which */
const bodyOf = ({ key, secret, code, replace, emptied }, which) => ({
  api_key: key.input.value.trim(),
  api_secret: secret.input.value.trim(),
  [BROKERS[which].code]: codeIn(code.input.value),
  ...(replace.box.checked && { replace_broker_user: true }),
  ...(emptied.box.checked && { replace_with_none: true }),
});

/** The code alone, or out of a pasted address. @param {string} pasted */
function codeIn(pasted) {
  const trimmed = pasted.trim();
  const query = trimmed.split('?')[1];
  if (!query) return trimmed;
  for (const [name, value] of new URLSearchParams(query.split('#')[0])) {
    if (['request_token', 'apisession', 'api_session'].includes(name.toLowerCase())) return value;
  }
  return trimmed;
}
