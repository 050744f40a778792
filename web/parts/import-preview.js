// A file on its way into the ledger: sent, previewed as what it would change, then confirmed or dropped.
import { call, serverNow, withQuery } from '../data/api.js';
import { correctionWords } from '../data/correction.js';
import { count, price, quantity, span } from '../data/format.js';
import { periodWords } from '../data/ledger.js';
import { preview as t } from '../text/import-preview.js';
import { ledger } from '../text/ledger.js';
import { refusedLines } from '../text/refused-lines.js';
import { secret } from './figures.js';
import { button, h, pieces, put, say } from './view.js';

/** A large file on a slow disk; the service itself gives up earlier. */
const WAIT_MS = 150_000;

/** @typedef {any} Preview what `POST /api/trades/imports` answers */
/** @typedef {import('./trade-drop.js').Acts & { into: HTMLElement }} Place */

/**
 * Sends a file, and shows what it would change or why it is not taken.
 * @param {File} file
 * @param {string} account
 * @param {Place} place
 * @param {boolean} [force] another client id than the account's is taken
 */
export async function readFile(file, account, place, force = false) {
  const panel = h('section', { class: 'panel preview', tabindex: '-1' });
  place.into.append(panel);
  try {
    const path = withQuery('/api/trades/imports', { account, force: force || null });
    const answer = /** @type {Preview} */ (await call(path, { method: 'POST', body: file, timeoutMs: WAIT_MS }));
    panel.dataset.import = String(answer.id);
    drawPreview(panel, file, answer, place);
    place.changed();
  } catch (failed) {
    drawRefusal(panel, file, failed, () => readFile(file, account, place, true));
  }
  panel.focus();
}

/** @param {HTMLElement} panel @param {File} file @param {any} failed @param {() => void} force */
function drawRefusal(panel, file, failed, force) {
  const close = () => panel.remove();
  /** @type {string[]} */
  const seen = failed.seen ?? [];
  const take = () => {
    close();
    force();
  };
  put(
    panel,
    h('h2', null, t.notTaken(file.name)),
    h('p', { class: 'problem', role: 'alert' }, failed.message),
    seen.length > 0 && [h('p', { class: 'small' }, t.seen), h('pre', { class: 'seen' }, seen.join('\n'))],
    h(
      'p',
      { class: 'actions' },
      failed.code === 'account_differs' && button(t.force, take),
      button(t.close, close, { class: 'quiet' }),
    ),
  );
}

/** @param {HTMLElement} panel @param {File} file @param {Preview} its @param {Place} place */
function drawPreview(panel, file, its, place) {
  const left = h('span', { class: 'muted' });
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const acts = h('p', { class: 'actions' });
  const own = /^zerodha/.test(its.format) ? 'a' : 'b';
  const isOther = its.account !== own && ['a', 'b'].includes(its.account);
  const format = ledger.formats[/** @type {keyof typeof ledger.formats} */ (its.format)] ?? its.format;
  const what = t.what(format, ledger.account(its.account), periodWords(its.period));
  put(
    panel,
    h('h2', null, t.title(file.name)),
    h('p', null, what, its.person !== 'self' && t.person(its.person)),
    isOther && h('p', { class: 'problem' }, t.otherBroker),
    countsOf(its),
    clashesOf(its),
    refusedOf(its),
    proposalsOf(its),
    its.notes.length > 0 && detailsOf(t.notes, its.notes.map((/** @type {string} */ note) => [note]), 0),
    problem,
    acts,
  );
  const stop = countDown(left, its.expires_at, panel);
  /** @param {string} path @param {'POST' | 'DELETE'} method */
  const send = async (path, method) => {
    try {
      const answer = await call(path, { method });
      stop();
      delete panel.dataset.import;
      drawEnd(panel, method === 'POST' ? t.confirmed(answer.new) : t.dropped, method === 'POST' ? its.proposals : []);
      place.changed();
    } catch (failed) {
      say(problem, failed.message);
      problem.hidden = false;
    }
  };
  const instead = async () => {
    await send(`/api/trades/imports/${its.id}`, 'DELETE');
    if (panel.dataset.import) return;
    panel.remove();
    readFile(file, own, place);
  };
  put(
    acts,
    isOther && button(t.instead(ledger.account(own)), instead, { class: 'primary' }),
    button(t.confirm, () => send(`/api/trades/imports/${its.id}/confirm`, 'POST'), { class: isOther ? null : 'primary' }),
    button(t.drop, () => send(`/api/trades/imports/${its.id}`, 'DELETE')),
    left,
  );
}

/** A line for each thing that happens to lines of the file. @param {Preview} its */
function countsOf(its) {
  /** @type {[string[], number][]} */
  const rows = [
    [its.kind === 'tax_report' ? t.report : t.rows.new, its.new],
    [t.rows.known, its.known],
    [t.rows.conflicts, its.conflict_count],
    [t.rows.refused, its.refused_count],
    [t.rows.proposals, its.proposal_count],
  ];
  return h(
    'table',
    { class: 'plain changes' },
    h('caption', { class: 'unseen' }, t.caption),
    h('thead', null, h('tr', null, h('td', null), h('th', { scope: 'col', class: 'number' }, t.lines), h('th', { scope: 'col' }, t.happens))),
    h(
      'tbody',
      null,
      rows
        .filter(([, n], at) => n > 0 || at < 2)
        .map(([[name, more, one], n]) =>
          h(
            'tr',
            null,
            h('th', { scope: 'row' }, name),
            h('td', { class: 'number' }, count(n)),
            h('td', null, n === 1 ? one : more),
          ),
        ),
    ),
  );
}

/** @param {string} title @param {any[][]} lines @param {number} missing of a list that is cut */
const detailsOf = (title, lines, missing) =>
  h(
    'details',
    { open: lines.length <= 5 },
    h('summary', null, `${title} (${count(lines.length + missing)})`),
    h(
      'ul',
      { class: 'told-lines' },
      lines.map((line) => h('li', null, line)),
      missing > 0 && h('li', { class: 'muted' }, t.more(missing)),
    ),
  );

/** @param {{ quantity: number, price: number }} of */
const figuresOf = (of) => `${secret(quantity)(of.quantity)} × ${secret(price)(of.price)}`;

/** @param {Preview} its */
function clashesOf({ conflicts, conflict_count: all }) {
  const lines = conflicts.map((/** @type {any} */ one) => [
    `${t.line(one.line)}: ${t.clash(figuresOf(one.stated), figuresOf(one.stored))}`,
  ]);
  return all > 0 && detailsOf(t.conflicts, lines, all - lines.length);
}

/** @param {Preview} its */
function refusedOf({ refused, refused_count: all }) {
  const lines = refused.map((/** @type {any} */ one) => [`${t.line(one.line)}: ${refusedLines[one.reason] ?? one.reason}`]);
  return all > 0 && detailsOf(t.refused, lines, all - lines.length);
}

/** @param {Preview} its */
function proposalsOf({ proposals, proposal_count: all }) {
  if (all === 0) return null;
  const lines = proposals.map((/** @type {any} */ one) => [`${t.line(one.line)}: ${correctionWords(one.correction)}`]);
  return h('div', null, detailsOf(t.proposals, lines, all - lines.length), h('p', { class: 'small' }, t.proposalsWhy));
}

/** Says how long the preview stands; returns what stops it. @param {HTMLElement} node @param {string} at @param {HTMLElement} panel */
function countDown(node, at, panel) {
  const tick = () => {
    const leftS = (Date.parse(at) - serverNow()) / 1000;
    if (!panel.isConnected) stop();
    else if (leftS > 0) say(node, t.expires(span(leftS)));
    else {
      stop();
      say(node, t.expired);
    }
  };
  const timer = setInterval(tick, 1_000);
  const stop = () => clearInterval(timer);
  tick();
  return stop;
}

/** What became of it; after a confirmation with what the file offers. @param {HTMLElement} panel @param {string} words @param {any[]} offers */
function drawEnd(panel, words, offers) {
  put(
    panel,
    h('p', { class: 'good', role: 'status' }, words),
    offers.map(({ correction }) => offerOf(correction)),
    h('p', { class: 'actions' }, button(t.close, () => panel.remove(), { class: 'quiet' })),
  );
  panel.focus();
}

/** @param {import('../data/correction.js').Correction} correction */
function offerOf(correction) {
  const words = correctionWords(correction);
  const line = h('p', { class: 'offer' }, words, ' ');
  const take = async () => {
    const { apply } = await import('./correction-form.js');
    if (await apply(correction)) put(line, words, ' ', pieces([{ text: t.taken, kind: 'good' }]));
  };
  line.append(button(t.take, take, { class: 'quiet', 'aria-label': t.takeThis(words) }));
  return line;
}
