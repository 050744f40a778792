// Where a broker's files are dropped: each is sent as it is, and comes back as a preview that nothing counts of yet.
import { isAccountName } from '../data/ledger.js';
import { text } from '../text.js';
import { ledger } from '../text/ledger.js';
import { trades as t } from '../text/trades.js';
import { attr, button, h, put, say } from './view.js';

/** @typedef {import('../data/ledger.js').Account} Account */

/** As many previews as the service keeps open. */
const FILES_MAX = 4;
/** The choice that lets a name be typed. */
const OTHER = '+';

/**
 * @typedef {object} Acts
 * @property {() => void} changed reads everything anew
 * @property {(words: string) => void} announce
 */

/**
 * @param {Acts} act
 * @param {string | null} asked the account for which a file is missing
 * @param {string} period of which it is missing
 */
export function dropZone(act, asked, period) {
  const nodes = nodesOf();
  const { zone, picker, account, name, nameBox, status, previews, problem } = nodes;
  const chosen = () => (account.value === OTHER ? name.value.trim() : account.value);
  const tell = (/** @type {string} */ words) => {
    say(problem, words);
    problem.hidden = words === '';
  };
  const take = async (/** @type {File[]} */ files) => {
    if (files.length === 0) return;
    if (!isAccountName(chosen())) {
      tell(t.badName);
      name.focus();
      return;
    }
    tell(files.length > FILES_MAX ? t.fewer(files.length - FILES_MAX) : '');
    attr(zone, 'aria-busy', 'true');
    try {
      const { readFile } = await import('./import-preview.js');
      for (const file of files.slice(0, FILES_MAX)) {
        say(status, t.reading(file.name));
        await readFile(file, chosen(), { ...act, into: previews });
      }
    } catch {
      tell(text.problem.offline);
    }
    attr(zone, 'aria-busy', null);
    say(status, '');
  };
  picker.addEventListener('change', () => {
    take([...(picker.files ?? [])]);
    picker.value = '';
  });
  account.addEventListener('change', () => {
    nameBox.hidden = account.value !== OTHER;
    if (!nameBox.hidden) name.focus();
  });
  const end = catchFiles(zone, take);
  const draw = accountChoice(account, asked);
  draw([]);
  const node = h('div', null, lay(nodes, asked && period ? t.wanted(ledger.account(asked), period) : ''), previews);
  return {
    node,
    end,
    /** @param {Account[]} accounts */
    knows(accounts) {
      draw(accounts.map((one) => one.name));
      nodes.accounts = accounts;
    },
  };
}

function nodesOf() {
  const name = h('input', {
    type: 'text',
    id: 'account-name',
    maxlength: 40,
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: 'false',
    'aria-describedby': 'account-hint',
  });
  return {
    zone: h('section', { class: 'drop-zone no-print', 'aria-label': t.choose }),
    picker: h('input', { type: 'file', id: 'files', class: 'unseen', multiple: true, tabindex: '-1' }),
    account: h('select', { id: 'account' }),
    name,
    nameBox: h(
      'div',
      { class: 'field', hidden: true },
      h('label', { for: 'account-name' }, t.otherName),
      name,
      h('p', { class: 'hint', id: 'account-hint' }, t.otherHint),
    ),
    status: h('p', { class: 'muted', role: 'status' }),
    problem: h('p', { class: 'problem', role: 'alert', hidden: true }),
    previews: h('div', { class: 'previews' }),
    where: h('details', { class: 'small' }, h('summary', null, t.where)),
    /** @type {Account[]} */
    accounts: [],
  };
}

/** @param {ReturnType<typeof nodesOf>} nodes @param {string} wanted */
function lay(nodes, wanted) {
  const { zone, picker, account, nameBox, status, problem, where } = nodes;
  attr(picker, 'aria-label', t.choose);
  where.addEventListener('toggle', () => tellWhere(nodes));
  put(
    zone,
    wanted && h('p', { class: 'strong' }, wanted),
    h(
      'div',
      { class: 'drop-row' },
      h('p', null, t.drop, ' ', button(t.choose, () => picker.click(), { class: 'primary' }), picker),
      h('div', { class: 'drop-account' }, h('label', { for: 'account' }, t.account), account),
    ),
    nameBox,
    h('p', { class: 'hint' }, t.dropMore),
    h('p', { class: 'hint promise' }, t.promise),
    where,
    problem,
    status,
  );
  return zone;
}

/** Where the brokers offer their files; it comes when it is opened. @param {ReturnType<typeof nodesOf>} nodes */
async function tellWhere({ where, accounts }) {
  if (!where.open || where.childElementCount > 1) return;
  await import('./no-trades.js').then(
    (its) => where.childElementCount > 1 || where.append(...its.whereFilesAre(accounts)),
    () => {},
  );
}

/** Lists the accounts, the two that are synced first. @param {HTMLSelectElement} select @param {string | null} asked */
function accountChoice(select, asked) {
  /** @type {string} */
  let listed = '';
  return (/** @type {string[]} */ names) => {
    const all = [...new Set(['a', 'b', ...(asked && isAccountName(asked) ? [asked] : []), ...names])];
    if (listed === all.join()) return;
    listed = all.join();
    const before = select.value || (asked ?? '');
    put(
      select,
      all.map((name) => h('option', { value: name }, ledger.account(name))),
      h('option', { value: OTHER }, t.other),
    );
    select.value = [...all, OTHER].includes(before) ? before : 'a';
  };
}

/**
 * Files are taken wherever they are dropped: a browser would open one that misses the zone, in place of the page.
 * Returns what ends it.
 * @param {HTMLElement} zone
 * @param {(files: File[]) => void} take
 */
function catchFiles(zone, take) {
  const over = new AbortController();
  const mark = (/** @type {boolean} */ is) => zone.classList.toggle('drop', is);
  /** @type {(kind: 'dragover' | 'drop', then: (files: File[]) => void) => void} */
  const on = (kind, then) =>
    addEventListener(
      kind,
      (event) => {
        if (!event.dataTransfer?.types.includes('Files')) return;
        event.preventDefault();
        then([...event.dataTransfer.files]);
      },
      { signal: over.signal },
    );
  on('dragover', () => mark(true));
  on('drop', (files) => {
    mark(false);
    take(files);
  });
  addEventListener('dragleave', ({ relatedTarget }) => relatedTarget === null && mark(false), { signal: over.signal });
  return () => over.abort();
}
