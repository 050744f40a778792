// The market at a glance: three indices, the sectors, and the best signals.
import { call, serverNow } from '../api.js';
import { ageMark, moved } from '../figures.js';
import { arrow, day, heat, moments, percent, price, span, time } from '../format.js';
import * as live from '../live.js';
import { signalTable, signalWords, simulatedMark } from '../signal-table.js';
import { text } from '../text.js';
import { attr, h, keyed, pieces, put, say, skeleton } from '../view.js';

const t = text.market;
export const title = t.title;

const INDICES = [
  { key: 'index1', name: 'NIFTY 50', symbol: 'NSE:NIFTY 50' },
  { key: 'bankindex', name: 'BANK NIFTY', symbol: 'NSE:NIFTY BANK' },
  { key: 'index2', name: 'SENSEX', symbol: 'BSE:SENSEX' },
];

export function show({ main }) {
  const cards = INDICES.map(makeCard);
  const sectors = h('ul', { class: 'tiles' });
  const nothing = h('p', { class: 'empty', role: 'status', hidden: true });
  const signals = h('div', { class: 'signals-box' }, skeleton(6));
  main.className = 'market';
  put(main,
    h('h1', { class: 'unseen' }, t.heading),
    nothing,
    h('div', { class: 'cards-3' }, cards.map(({ node }) => node)),
    h('section', { 'aria-labelledby': 'sectors' },
      h('header', null, h('h2', { id: 'sectors' }, t.sectors), h('span', { class: 'legend', 'aria-hidden': 'true' }, t.legend.map((label, at) => h('i', { 'data-heat': ['down2', 'down1', 'even', 'up1', 'up2'][at] }, label)))),
      sectors),
    h('section', { 'aria-labelledby': 'signals' },
      h('header', null, h('h2', { id: 'signals' }, t.signals), h('a', { href: '/signals' }, t.allSignals)),
      signals));
  put(sectors, Array.from({ length: 12 }, () => h('li', { class: 'tile waiting', 'aria-hidden': 'true' })));

  const kept = new Map();
  let shownSectors = false;
  const draw = () => {
    const snapshot = live.valueOf('snapshot');
    if (!snapshot) return;
    nothing.hidden = true;
    cards.forEach(({ draw: drawCard }, at) => drawCard(snapshot, INDICES[at].key));
    if (!shownSectors) sectors.replaceChildren();
    shownSectors = true;
    const sorted = [...snapshot.sectors].sort((a, b) => (b.change_pct ?? -Infinity) - (a.change_pct ?? -Infinity));
    keyed(sectors, kept, sorted, (sector) => sector.symbol, makeTile, (handle, sector) => handle(sector));
  };
  const ends = [live.on('snapshot', draw), live.on('tick', draw)];

  let shownSignals = '';
  /** The snapshot's signals as they were drawn. @type {string | null} */
  let shownTop = null;
  const fetched = live.repeat(async () => {
    if (!live.valueOf('snapshot')) await explainNothing(nothing);
    const list = await call('/api/signals').catch((problem) => {
      if (problem.code === 'signals_not_ready') return null;
      throw problem;
    });
    const top = live.valueOf('snapshot')?.signals ?? [];
    const sign = JSON.stringify([list?.as_of, list?.meaning, top]);
    if (sign !== shownSignals) put(signals, signalsOf(list, top));
    shownSignals = sign;
    shownTop = JSON.stringify(top);
  }, 60_000);
  // Words come with a fetch, rows with the snapshot: whichever is last draws both.
  ends.push(live.on('snapshot', (snapshot) => {
    const top = JSON.stringify(snapshot.signals);
    if (top !== shownTop && shownTop !== null) fetched.now();
  }));
  return () => { fetched.stop(); for (const end of ends) end(); };
}

async function explainNothing(node) {
  const problem = await call('/api/index/snapshot').then(() => null, (refused) => refused);
  if (!problem || live.valueOf('snapshot')) return;
  const health = await call('/api/health').catch(() => null);
  node.hidden = false;
  say(node, problem.code === 'snapshot_not_ready'
    ? `${t.notReady} ${health ? t.startedAgo(span(health.uptime_s)) : ''}`
    : `${problem.message} ${text.retried}`);
}

function makeCard({ name }) {
  const level = h('p', { class: 'level' }, '\u00a0');
  const change = h('p', { class: 'change' }, '\u00a0');
  const state = h('p', { class: 'state' }, '\u00a0');
  const node = h('article', { class: 'card waiting' }, h('h2', null, name), level, change, state);
  let sign = '';
  const draw = (snapshot, key) => {
    const { market } = snapshot;
    const own = snapshot[`${key}_stale`] !== undefined;
    const asOf = snapshot[`${key}_as_of`] ?? market.as_of_ist;
    const its = {
      as_of: asOf,
      stale: own ? snapshot[`${key}_stale`] : market.stale,
      delay_s: own ? snapshot[`${key}_delay_s`] : market.delay_s,
    };
    /** @type {any[]} */
    const bits = [{ text: market.is_open ? time(asOf) : moments(asOf, serverNow()), kind: 'as-of' }, ...ageMark(its)];
    if (market.simulated) bits.push(' ', { text: text.simulated, kind: 'mark simulated' });
    const next = JSON.stringify([snapshot[`${key}_price`], snapshot[`${key}_change`], bits]);
    if (next === sign) return;
    sign = next;
    node.classList.remove('waiting');
    say(level, price(snapshot[`${key}_price`]));
    put(change, pieces([moved(snapshot[`${key}_change`], percent, text.noClose)]));
    put(state, pieces(bits));
  };
  return { node, draw };
}

function makeTile(sector) {
  const name = h('span', { class: 'name' }, sector.name);
  const change = h('span', { class: 'moved' });
  const node = h('li', { class: 'tile' }, name, change);
  const draw = (next) => {
    attr(node, 'data-heat', heat(next.change_pct));
    say(change, next.change_pct === null ? t.noQuote : `${arrow(next.change_pct)} ${percent(next.change_pct)}`);
  };
  return { node, handle: draw };
}

/** the document of `/api/signals`, null before there is one */
function signalsOf(list, top) {
  if (!list) return h('p', { class: 'empty' }, text.signals.none);
  const rows = signalTable('best signals', top);
  return h('div', null,
    h('p', { class: 'muted' }, text.signals.of(day(list.as_of), list.horizon_sessions), ' ', simulatedMark(top)),
    top.length ? rows.node : h('p', { class: 'empty' }, t.noneAbove),
    signalWords(list));
}
