// Syncs a broker. Key, secret and code are sent once and kept nowhere.
import { call, session } from '../data/api.js';
import { simulated } from '../parts/figures.js';
import { field, onSubmit, problemPlace } from '../parts/form.js';
import { syncReport } from '../parts/report.js';
import { attr, button, h, put, say } from '../parts/view.js';
import { sync as t } from '../text/sync.js';

const whichOf = (path) => (path.endsWith('/b') ? 'b' : 'a');
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

export function show({ main, path, announce }) {
  main.className = 'narrow sync';
  const which = whichOf(path);
  const broker = BROKERS[which];
  const brought = takeCode();
  const off = { autocomplete: 'off', secret: true, required: true };
  const key = field({ name: 'api_key', label: t.key, ...off });
  const secret = field({ name: 'api_secret', label: t.secret, ...off });
  const code = field({ name: broker.code, label: t.code[which], hint: t.codeHint, ...off, value: brought });
  const came = h('p', { class: 'good', role: 'status' }, brought && t.codeCame);
  const fields = [key, secret, code];
  const problem = problemPlace();
  const waiting = h('p', { class: 'muted', role: 'status' });
  const result = h('section', { 'aria-live': 'polite' });
  const address = `${location.origin}${broker.back}`;
  const copied = h('span', { role: 'status', class: 'muted' });
  const login = h('a', { class: 'button', target: '_blank', rel: 'noreferrer noopener' }, t.openLogin);
  const page = session.login_pages?.[which];
  const drawLogin = () => {
    const typed = key.input.value.trim();
    attr(login, 'href', page && typed ? page + encodeURIComponent(typed) : null);
    attr(login, 'aria-disabled', page && typed ? null : 'true');
  };
  key.input.addEventListener('input', drawLogin);
  drawLogin();
  // A broker's own login is behind TLS; the simulator's is not, and its app is no secret.
  const demo =
    page?.startsWith('http:') &&
    h(
      'p',
      { class: 'simulated-app' },
      simulated(true),
      ' ',
      t.demo(...broker.demo),
      ' ',
      button(
        t.fillIn,
        () => {
          [key.input.value, secret.input.value] = broker.demo;
          drawLogin();
          (code.input.value ? submit : login).focus();
        },
        { class: 'link' },
      ),
    );
  // The login ends in another tab; the one where it began gets the code too. Any page can bring a code of its own to the way
  // back, so this page takes one only while it waits, and the last one, which is the one of the person's own login.
  let openedMs = -Infinity;
  for (const kind of ['click', 'auxclick'])
    login.addEventListener(kind, () => {
      if (login.hasAttribute('href')) openedMs = performance.now();
    });
  const tabs = new BroadcastChannel(`code ${which}`);
  tabs.onmessage = ({ data }) => {
    if (!form.isConnected || performance.now() - openedMs > TAKEN_MS) return;
    code.input.value = data;
    say(came, t.codeCame);
    taken.postMessage('');
  };
  // Who comes back in a new tab is told that the first one has it all.
  const taken = new BroadcastChannel(`taken ${which}`);
  taken.onmessage = () => {
    if (brought && form.isConnected) say(came, `${t.codeCame} ${t.goBack}`);
  };
  if (brought) tabs.postMessage(brought);
  // Shown once the broker has said that the code is of somebody else.
  const replaces = h('input', { type: 'checkbox', name: 'replace_broker_user' });
  const replace = h('p', { hidden: true }, h('label', null, replaces, ' ', t.replace));
  // Shown once the broker has named no holdings where there are some.
  const empties = h('input', { type: 'checkbox', name: 'replace_with_none' });
  const emptied = h('p', { hidden: true }, h('label', null, empties, ' ', t.replaceWithNone));
  /** @type {AbortController | null} */
  let asking = null;
  const cancel = button(t.cancel, () => asking?.abort(), { class: 'quiet', hidden: true });
  const submit = h('button', { type: 'submit', class: 'primary' }, t.sync[which]);

  const form = h(
    'form',
    { method: 'post', autocomplete: 'off', novalidate: true },
    h(
      'ol',
      { class: 'steps' },
      h(
        'li',
        null,
        h('h2', null, t.stepKey),
        demo,
        key.node,
        login,
        h('p', { class: 'hint' }, t.register, ' '),
        h(
          'p',
          { class: 'address' },
          h('code', null, address),
          ' ',
          button(
            t.copy,
            () => {
              navigator.clipboard?.writeText(address).then(
                () => say(copied, t.copied),
                () => say(copied, t.notCopied),
              );
            },
            { class: 'quiet' },
          ),
          ' ',
          copied,
        ),
      ),
      h('li', null, h('h2', null, t.stepCode), code.node, came),
      h('li', null, h('h2', null, t.stepSync), secret.node, h('p', { class: 'promise' }, t.promise)),
    ),
    problem,
    replace,
    emptied,
    h('p', { class: 'actions' }, submit, ' ', cancel),
    waiting,
  );
  const lead = h('p', { class: 'lead' }, t.who[which]);
  put(
    main,
    h('p', { class: 'back' }, h('a', { href: '/portfolio' }, t.back)),
    h('h1', null, t.sync[which]),
    lead,
    form,
    result,
  );
  if (brought) key.input.focus();

  /** Neither the page nor the browser keeps them. */
  const empty = () => {
    for (const one of fields) {
      one.input.value = '';
      one.input.removeAttribute('value');
    }
    say(came, '');
  };
  onSubmit(form, fields, problem, async () => {
    asking = new AbortController();
    cancel.hidden = false;
    say(waiting, t.asking[which]);
    try {
      const body = {
        api_key: key.input.value.trim(),
        api_secret: secret.input.value.trim(),
        [broker.code]: codeIn(code.input.value),
        ...(replaces.checked && { replace_broker_user: true }),
        ...(empties.checked && { replace_with_none: true }),
      };
      const report = await call(broker.path, { method: 'POST', body, signal: asking.signal, timeoutMs: WAIT_MS });
      put(result, syncReport(report));
      form.remove();
      lead.remove();
      empty();
      result.querySelector('h2')?.focus();
    } catch (failed) {
      if (failed.code === 'broker_user_changed') replace.hidden = false;
      if (failed.code === 'no_holdings_sent') emptied.hidden = false;
      // What can pass is no reason to have all of it typed again; the fields are the user's own page.
      if (!asking.signal.aborted && !failed.passes) empty();
      if (!asking.signal.aborted) throw failed;
      announce(t.cancelled);
    } finally {
      cancel.hidden = true;
      say(waiting, '');
      drawLogin();
    }
  });
  return () => {
    tabs.close();
    taken.close();
    asking?.abort();
    empty();
  };
}

/** The code alone, or out of a pasted address. */
function codeIn(pasted) {
  const trimmed = pasted.trim();
  const query = trimmed.split('?')[1];
  if (!query) return trimmed;
  for (const [name, value] of new URLSearchParams(query.split('#')[0])) {
    if (['request_token', 'apisession', 'api_session'].includes(name.toLowerCase())) return value;
  }
  return trimmed;
}
