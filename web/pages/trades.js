// The trades ledger: how far it is proved, what files added, and all trades with their conflicts.
import { call, withQuery } from '../data/api.js';
import { periodWords, proofOf } from '../data/ledger.js';
import * as live from '../data/live.js';
import { onAppearance } from '../data/prefs.js';
import { simulated } from '../parts/figures.js';
import { proofHead } from '../parts/proof-head.js';
import { learnShares } from '../parts/share-name.js';
import { dropZone } from '../parts/trade-drop.js';
import { button, h, memo, put, say, skeleton } from '../parts/view.js';
import { text } from '../text.js';
import { ledger } from '../text/ledger.js';
import { trades as t } from '../text/trades.js';

export const title = t.title;

const PAGE = 100;
/** As many rows as the service gives at once: nobody holds more. */
const ROWS = 1000;

/** @typedef {Answer<'/api/trades'>['trades'][number]} Trade */
/** @typedef {ReturnType<typeof lay>} Nodes */
/** @typedef {import('../parts/trade-list.js').Acts} Acts */
/** @typedef {Awaited<ReturnType<typeof loadLists>>} Lists */

/**
 * @typedef {object} State
 * @property {{ [filter: string]: string }} chosen
 * @property {Trade[]} trades
 * @property {string | null} cursor where older ones begin
 * @property {ReturnType<typeof proofOf> | null} proof
 * @property {Answer<'/api/trades/accounts'>['accounts']} accounts
 * @property {Answer<'/api/trades/imports'>['imports']} imports
 */

/** @param {Context} context */
export function show({ main, go, announce }) {
  /** @type {State} */
  const state = { chosen: chosenAt(), trades: [], cursor: null, proof: null, accounts: [], imports: [] };
  const draw = () => drawAll(nodes, state, only);
  const tell = (/** @type {string} */ words) => {
    say(nodes.problem, words);
    nodes.problem.hidden = words === '';
  };
  /** Shows the trades that fit, or says why not. */
  const filter = async () => {
    try {
      await readTrades(state);
      tell('');
      draw();
    } catch (failed) {
      tell(failed.message);
    }
  };
  const only = (/** @type {string} */ symbol) => {
    nodes.lists?.trades.choose('symbol', symbol);
    state.chosen.symbol = symbol;
    filter();
  };
  const act = {
    go,
    announce,
    tell,
    changed: () => fetched.now(),
    /** @type {(name: string, value: string) => void} */
    filter: (name, value) => {
      state.chosen[name] = name === 'symbol' ? value.toUpperCase() : value;
      filter();
    },
    older: () => readTrades(state, state.cursor).then(draw, (failed) => tell(failed.message)),
  };
  const nodes = lay(main, act);
  const fetched = live.repeat(async () => {
    try {
      const lists = nodes.lists ?? loadLists(act);
      await readAll(state);
      nodes.lists = await lists;
      if (state.chosen.symbol) nodes.lists.trades.choose('symbol', state.chosen.symbol);
      tell('');
      draw();
    } catch (failed) {
      nodes.head.classList.remove('waiting');
      tell(failed.message);
      if (!state.proof) put(nodes.rest);
      throw failed;
    }
  }, 600_000);
  const end = onAppearance(() => state.proof && draw());
  return () => {
    fetched.stop();
    nodes.drop.end();
    end();
  };
}

/** A card of the page Integrity leads to the trades of its share. @returns {{ [filter: string]: string }} */
function chosenAt() {
  const symbol = new URLSearchParams(location.search).get('symbol');
  return symbol ? { symbol } : {};
}

/** What shows imports and trades. @param {Acts} act */
async function loadLists(act) {
  const [{ importList }, { tradeList }] = await Promise.all([
    import('../parts/import-list.js'),
    import('../parts/trade-list.js'),
  ]);
  return { imports: importList(act), trades: tradeList(act) };
}

/** The trades that fit, or the page behind the cursor. @param {State} state @param {string | null} [cursor] */
async function readTrades(state, cursor = null) {
  const page = await call(withQuery('/api/trades', { ...state.chosen, limit: PAGE, cursor }));
  // With their names the rows are higher: both come at once.
  await learnShares(page.trades);
  state.trades = cursor ? [...state.trades, ...page.trades] : page.trades;
  state.cursor = page.next_cursor;
}

/** @param {State} state */
async function readAll(state) {
  const [proof, { accounts }, { imports }] = await Promise.all([
    call(withQuery('/api/trades/reconciliation', { limit: ROWS })),
    call('/api/trades/accounts'),
    call('/api/trades/imports'),
    readTrades(state),
  ]);
  Object.assign(state, { proof: proofOf(proof.rows), accounts, imports });
}

/**
 * @param {HTMLElement} main
 * @param {Acts} act
 */
function lay(main, act) {
  const asked = new URLSearchParams(location.search);
  const period = { from: asked.get('from'), to: asked.get('to') };
  const account = asked.get('account');
  main.className = 'ledger';
  const nodes = {
    head: h('p', { class: 'lead proof waiting', role: 'status' }, '\u00a0'),
    clashes: h('p', { hidden: true }),
    problem: h('p', { class: 'problem', role: 'alert', hidden: true }),
    drop: dropZone(act, account, account && asked.get('to') ? periodWords(period) : ''),
    rest: h('div', { class: 'ledger-body' }, skeleton(9)),
    /** @type {Lists | null} they come beside the first answers */
    lists: null,
  };
  put(
    main,
    h('div', { class: 'title-row' }, h('h1', null, t.title), pageLinks()),
    nodes.head,
    nodes.drop.node,
    nodes.problem,
    nodes.rest,
    h('p', { class: 'fine' }, ledger.worksheet),
  );
  return nodes;
}

const pageLinks = () =>
  h(
    'div',
    { class: 'actions no-print' },
    h('a', { class: 'button', href: '/gains' }, ledger.pages.gains),
    h('a', { class: 'button', href: '/integrity' }, ledger.pages.integrity),
  );

/** @param {Nodes} nodes @param {State} state @param {(symbol: string) => void} only */
function drawAll(nodes, state, only) {
  const { proof, imports, accounts, trades, chosen } = state;
  const { lists } = nodes;
  if (!proof || !lists) return;
  // What is open above the lists is not listed once more.
  const others = imports.filter(({ id }) => !nodes.drop.node.querySelector(`[data-import="${id}"]`));
  const isEmpty = others.length === 0 && trades.length === 0 && !Object.values(chosen).some(Boolean);
  drawHead(nodes, proof, isEmpty);
  drawClashes(nodes.clashes, proof, only);
  nodes.drop.knows(accounts);
  lists.imports.update(others);
  lists.trades.update(state);
  // Syncs bring what was traded since, and no history: as long as no file is there, the page says where files are.
  const hasFiles = others.some(({ format }) => !format.startsWith('sync_')) || imports.length > others.length;
  const shown = isEmpty ? [] : [nodes.clashes, lists.imports.node, lists.trades.node];
  // All of it comes at once: one part after the other would push down the next.
  memo(nodes.rest, [isEmpty, hasFiles], () => {
    if (hasFiles) put(nodes.rest, ...shown);
    else
      import('../parts/no-trades.js').then(
        (its) => put(nodes.rest, its.noTradesYet(accounts, isEmpty), ...shown),
        () => put(nodes.rest, h('p', { class: 'problem' }, text.problem.offline), ...shown),
      );
  });
}

/** How far the ledger is proved. @param {Nodes} nodes @param {ReturnType<typeof proofOf>} proof @param {boolean} isEmpty */
function drawHead({ head }, proof, isEmpty) {
  const { open, at } = proof;
  head.classList.remove('waiting');
  const link = at && open.length > 0 && !isEmpty && h('a', { href: '/integrity' }, t.show(open.length));
  memo(head, [proof, isEmpty], () => put(head, proofHead(proof), link && ' · ', link, ' ', simulated(proof.simulated)));
}

/** Trades of which two files disagree. @param {HTMLElement} node @param {ReturnType<typeof proofOf>} proof @param {(symbol: string) => void} only */
function drawClashes(node, { conflicts }, only) {
  node.hidden = conflicts.length === 0;
  put(
    node,
    t.conflicts,
    conflicts.map(({ symbol }) => [' ', button(symbol ?? ledger.noSymbol, () => only(symbol ?? ''), { class: 'link' })]).flat(),
  );
}
