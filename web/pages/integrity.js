// The ledger against the brokers: a card for each share that does not fit, with what may be the cause and what mends it.
import { call, session, withQuery } from '../data/api.js';
import { proofOf, withoutSync } from '../data/ledger.js';
import * as live from '../data/live.js';
import { onAppearance } from '../data/prefs.js';
import { simulated } from '../parts/figures.js';
import { proofHead } from '../parts/proof-head.js';
import { learnShares } from '../parts/share-name.js';
import { h, memo, put, say, skeleton } from '../parts/view.js';
import { integrity as t } from '../text/integrity.js';
import { ledger } from '../text/ledger.js';

export const title = t.title;

const ROWS = 1000;

/** @typedef {import('../data/ledger.js').Proof} Proof */
/** @typedef {Answer<'/api/trades/corrections'>['corrections'][number]} Stated */
/** @typedef {ReturnType<typeof lay>} Nodes */
/** @typedef {{ rows: Proof[] | null, corrections: Stated[] }} State */

/** @param {Context} context */
export function show({ main, announce }) {
  /** @type {State} */
  const state = { rows: null, corrections: [] };
  const nodes = lay(main);
  const parts = import('../parts/proof-cards.js');
  parts.catch(() => {});
  const act = {
    announce,
    changed: () => fetched.now(),
    tell: (/** @type {string} */ words) => tell(nodes, words),
  };
  const draw = async () => drawAll(nodes, state, await parts, act);
  const fetched = live.repeat(async () => {
    try {
      const [{ rows }, { corrections }] = await Promise.all([
        call(withQuery('/api/trades/reconciliation', { limit: ROWS })),
        call('/api/trades/corrections'),
      ]);
      await learnShares(rows);
      Object.assign(state, { rows, corrections });
      tell(nodes, '');
      await draw();
    } catch (failed) {
      nodes.head.classList.remove('waiting');
      tell(nodes, failed.message);
      if (!state.rows) put(nodes.body);
      throw failed;
    }
  }, 600_000);
  const end = onAppearance(() => state.rows && draw());
  return () => {
    fetched.stop();
    end();
  };
}

/** @param {Nodes} nodes @param {string} words */
function tell({ problem }, words) {
  say(problem, words);
  problem.hidden = words === '';
}

/** @param {HTMLElement} main */
function lay(main) {
  main.className = 'ledger';
  const nodes = {
    head: h('p', { class: 'lead proof waiting', role: 'status' }, '\u00a0'),
    problem: h('p', { class: 'problem', role: 'alert', hidden: true }),
    body: h('div', { class: 'ledger-body' }, skeleton(12)),
  };
  put(
    main,
    h(
      'div',
      { class: 'title-row' },
      h('h1', null, t.title),
      h(
        'div',
        { class: 'actions no-print' },
        h('a', { class: 'button', href: '/trades' }, ledger.pages.trades),
        h('a', { class: 'button', href: '/gains' }, ledger.pages.gains),
      ),
    ),
    nodes.head,
    h('p', { class: 'muted' }, t.what),
    nodes.problem,
    nodes.body,
    h('p', { class: 'fine' }, ledger.worksheet),
  );
  return nodes;
}

/**
 * @param {Nodes} nodes
 * @param {State} state
 * @param {typeof import('../parts/proof-cards.js')} parts
 * @param {import('../parts/proof-cards.js').Acts} act
 */
function drawAll({ head, body }, { rows, corrections }, parts, act) {
  if (!rows) return;
  const proof = proofOf(rows);
  head.classList.remove('waiting');
  memo(head, proof, () => put(head, proofHead(proof), ' ', simulated(proof.simulated)));
  const { accounts, rest } = withoutSync(proof.open);
  memo(body, [rows, corrections], () =>
    put(
      body,
      proof.all === 0 && h('p', { class: 'empty' }, t.nothing, ' ', h('a', { href: '/trades' }, t.toTrades)),
      proof.all > 0 && proof.open.length === 0 && h('p', { class: 'empty' }, t.allFits),
      accounts.map((account) => parts.accountCard(account, Boolean(session.login_pages))),
      h(
        'div',
        { class: 'proof-cards' },
        rest.map((row) => parts.proofCard(row, act)),
      ),
      parts.correctionList(corrections, rows, act),
      parts.fittingList(rows.filter((row) => row.proved)),
    ),
  );
}
