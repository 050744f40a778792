// One portfolio from both brokers: totals, holdings merged by ISIN or by broker, positions.
import { call, serverNow, session, withQuery } from '../data/api.js';
import { arrow, day, direction, isKnown, isoDay, moments, percent, rupees, signedRupees } from '../data/format.js';
import * as live from '../data/live.js';
import { kept, onAppearance } from '../data/prefs.js';
import { movedLarge, secret } from '../parts/figures.js';
import { showHoldings } from '../parts/holdings-tab.js';
import { attr, button, h, memo, pieces, put, say, skeleton } from '../parts/view.js';
import { text } from '../text.js';
import { portfolio as t } from '../text/portfolio.js';

export const title = t.title;

/** The service asks the feeds for what was just synced; what it leaves out until then says little. */
const SETTLING_MS = 15_000;
/** How often it is asked for what has moved: a large portfolio more seldom, so that an hour costs some MB at most. */
const EVERY_MS = 3_000;
const EVERY_ROW_MS = 70;
const TABS = /** @type {const} */ (['holdings', 'positions', 'allocation', 'returns']);
/** @typedef {typeof TABS[number]} Tab */

/** @typedef {Answer<'/api/portfolio/holdings'>} Holdings */
/** @typedef {Holdings['summary']} Summary */
/** @typedef {ReturnType<typeof lay>} Nodes */
/** @typedef {{ by: 'isin' | 'broker', only: string, answer: Holdings | null, tag: string | null, morning: (() => void) | null }} State */

/** @param {Context} context */
export function show({ main }) {
  /** @type {State} */
  const state = { by: kept('portfolio view') === 'broker' ? 'broker' : 'isin', only: '', answer: null, tag: null, morning: null };
  const nodes = lay(main, (name) => tab.choose(name));
  const tab = chooser(nodes, state);
  const draw = () => {
    const { answer } = state;
    if (!answer) return;
    const { summary } = answer;
    const isEmpty = !summary.synced.a && !summary.synced.b;
    for (const part of nodes.filled) part.hidden = isEmpty;
    drawTotals(nodes, summary, () => {
      state.only = 'without_cost';
      tab.draw(answer);
    });
    say(nodes.synced, timesOf(summary));
    state.morning?.();
    if (isEmpty) tab.showSteps();
    else tab.show(answer);
  };
  const fetched = live.repeat(async () => {
    const isFirst = !state.answer;
    state.answer = await readHoldings(nodes, state);
    // What is to be done opens with the first drawing: later it would push down the rest.
    if (isFirst && oldOf(state.answer.summary).length) await openMorning(nodes, state);
    draw();
    return Math.max(EVERY_MS, EVERY_ROW_MS * state.answer.holdings.length);
  }, EVERY_MS);
  nodes.times.addEventListener('toggle', () => nodes.times.open && openMorning(nodes, state));
  const ends = [live.on('tick', draw), onAppearance(draw)];
  return () => {
    fetched.stop();
    tab.end();
    for (const end of ends) end();
  };
}

/** @param {Nodes} nodes @param {State} state */
async function readHoldings({ problem, body }, state) {
  const { answer, tag } = state;
  try {
    /** @param {string | null} its */
    const tagged = (its) => {
      state.tag = its;
    };
    const path = withQuery('/api/portfolio/holdings', { live: true, since: answer && tag });
    const holdings = await call(path, { tagged });
    problem.hidden = true;
    // A first answer is whole: nothing is there to put it into.
    return answer ? (await import('../data/moved.js')).withMoved(answer, holdings) : holdings;
  } catch (failed) {
    problem.hidden = !session.user;
    say(problem, t.notRead(failed.message));
    if (!answer) put(body);
    throw failed;
  }
}

/** Lays out the page. @param {HTMLElement} main @param {(name: Tab) => void} choose */
function lay(main, choose) {
  main.className = 'portfolio';
  const tabs = TABS.map((name) =>
    button(t.tabs[name], () => choose(name), { 'aria-pressed': 'false', 'data-tab': name }),
  );
  const waiting = () => h('div', { class: 'waiting' }, h('dt', null, '\u00a0'), h('dd', null, '\u00a0'));
  const worth = h('p', { class: 'worth waiting' }, '\u00a0');
  const today = h('p', { class: 'today' });
  const hero = h('div', { class: 'hero' }, worth, today);
  const totals = h('dl', { class: 'totals' }, waiting(), waiting(), waiting());
  const notes = h('p', { class: 'notes' });
  const synced = h('summary', { class: 'muted' });
  const morning = h('ul', null);
  const times = h('details', { class: 'synced' }, synced, morning);
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const body = h('div', null);
  const syncs = syncLinks();
  const tabsBox = h('div', { class: 'tabs no-print', role: 'group', 'aria-label': t.tabsLabel }, tabs);
  put(
    main,
    h('div', { class: 'title-row' }, h('h1', null, t.title), syncs),
    hero,
    totals,
    notes,
    times,
    problem,
    tabsBox,
    body,
  );
  /** What is not there before the first sync. */
  const filled = [syncs, hero, totals, notes, times, tabsBox];
  return { worth, today, totals, notes, synced, times, morning, problem, body, tabs, filled };
}

/** The brokers whose last sync is of before the session that the figures are of. @param {Summary} sum */
function oldOf({ synced, day: of }) {
  const names = /** @type {const} */ (['a', 'b']).filter((name) => synced[name]);
  return names.filter((name) => isoDay(Date.parse(String(synced[name]))) < (of ?? ''));
}

/** Tells the morning: what is to be synced, what came at the last close, what is stale. @param {Nodes} nodes @param {State} state */
async function openMorning({ times, morning }, state) {
  times.open = true;
  const its = await import('../parts/morning.js').catch(() => null);
  state.morning ??= (await its?.showMorning(morning, state, oldOf)) ?? null;
}

/** What stands below the totals: a tab, or before the first sync the steps to it. @param {Nodes} nodes @param {State} state */
function chooser({ body, tabs }, state) {
  /** @type {(() => void) | null} */
  let end = null;
  /** @type {((answer: Holdings) => void) | null} */
  let draw = null;
  /** Whether the first steps stand there, since nothing was ever synced. */
  let steps = false;
  /** @param {Tab} name */
  const choose = (name) => {
    end?.();
    draw = end = null;
    steps = false;
    for (const tab of tabs) attr(tab, 'aria-pressed', String(tab.dataset.tab === name));
    if (name === 'positions') end = lazily(body, import('../parts/positions.js'), (its) => its.showPositions(body));
    else if (name === 'returns') end = lazily(body, import('../parts/returns-tab.js'), (its) => its.showReturns(body));
    else if (name === 'allocation')
      end = lazily(body, import('../parts/allocation.js'), (its) => {
        draw = its.showAllocation(body);
        if (state.answer) draw(state.answer);
      });
    else if (state.answer) {
      draw = showHoldings(body, state);
      draw(state.answer);
    } else put(body, skeleton(10));
  };
  choose('holdings');
  return {
    choose,
    /** @param {Holdings} answer */
    draw: (answer) => draw?.(answer),
    /** @param {Holdings} answer */
    show: (answer) => {
      if (steps || (!draw && !end)) choose('holdings');
      draw?.(answer);
    },
    showSteps: () => {
      if (!steps) end = lazily(body, import('../parts/first-steps.js'), (its) => its.showFirstSteps(body));
      steps = true;
    },
    end: () => end?.(),
  };
}

/**
 * Begins with a module once it has come; returns what ends it, whether it has come by then or not.
 * @template Module
 * @param {HTMLElement} into
 * @param {Promise<Module>} module
 * @param {(module: Module) => (() => void) | void} begin
 */
function lazily(into, module, begin) {
  /** @type {(() => void) | void} */
  let end;
  let isOver = false;
  put(into, skeleton(6));
  module.then(
    (come) => {
      if (!isOver) end = begin(come);
    },
    () => {
      if (!isOver) put(into, h('p', { class: 'problem', role: 'alert' }, text.problem.offline));
    },
  );
  return () => {
    isOver = true;
    end?.();
  };
}

const money = secret(rupees);
const signedMoney = secret(signedRupees);

/** @param {Nodes} nodes @param {Summary} sum @param {() => void} showThem */
function drawTotals({ worth, today, totals, notes }, sum, showThem) {
  const now = serverNow();
  const isSettling = now - Date.parse([sum.synced.a, sum.synced.b].filter(Boolean).sort().at(-1) ?? '') < SETTLING_MS;
  worth.classList.remove('waiting');
  say(worth, money(sum.total_current_value));
  const of = sum.day && sum.day !== isoDay(now) ? t.on(day(sum.day)) : t.today;
  const isWaiting = isSettling && sum.without_day_price + sum.without_close > 0;
  const inPercent = isKnown(sum.day_pnl_pct) ? ` (${percent(sum.day_pnl_pct)})` : '';
  const moves = isWaiting
    ? { text: '…', title: t.settling }
    : movedLarge(sum.day_pnl, (/** @type {number} */ value) => signedMoney(value) + inPercent, t.noDay);
  memo(today, [of, moves], () => put(today, h('span', { class: 'of' }, of), ' ', pieces([moves])));
  const figures = [
    { name: t.invested, value: money(sum.total_invested) },
    {
      name: t.pnl,
      value: `${arrow(sum.total_pnl)} ${signedMoney(sum.total_pnl)}`,
      note: percent(sum.total_pnl_pct),
      kind: direction(sum.total_pnl),
    },
    // With it the three are the value.
    {
      name: t.costUnknown,
      value: money(sum.value_without_cost),
      why: sum.without_cost > 0 ? t.costUnknownWhy(sum.without_cost) : t.costAllKnown,
    },
  ];
  figures.forEach((figure, at) => {
    const box = totals.children[at];
    const { name, value, note, kind, why } = figure;
    box.className = kind ?? '';
    memo(box, figure, () =>
      put(
        box,
        h('dt', null, pieces([why ? { text: name, why } : name])),
        h('dd', null, value, note && note !== '–' && h('small', null, note)),
      ),
    );
  });
  const leftDay = sum.without_day_price + sum.without_close;
  const left = [
    sum.without_cost > 0 && {
      text: t.notInPnl(sum.without_cost),
      why: t.withoutCost(sum.without_cost, money(sum.value_without_cost)),
    },
    sum.without_price > 0 && { text: t.notPriced(sum.without_price), why: t.withoutPrice(sum.without_price) },
    leftDay > 0 && { text: t.notInToday(leftDay), why: isWaiting ? t.settling : t.withoutDay(leftDay) },
  ].filter(Boolean);
  memo(notes, left, () =>
    put(
      notes,
      left.length === 0 ? t.allIn : left.flatMap((bit, at) => [at > 0 && ' · ', ...pieces([bit])]),
      sum.without_cost > 0 && [' · ', button(t.showThem, showThem, { class: 'link' })],
    ),
  );
}

/** When which broker was synced, and from when the prices are. @param {Summary} sum */
function timesOf(sum) {
  const now = serverNow();
  const times = /** @type {const} */ (['a', 'b']).map((name) => {
    const at = sum.synced[name];
    if (!at) return t.neverSynced(name.toUpperCase());
    const old = isoDay(Date.parse(at)) !== isoDay(now) ? ` ⚠ ${t.older}` : '';
    return `${t.syncedAt(name.toUpperCase(), moments(at, now))}${old}`;
  });
  const priced = sum.priced_from ? t.priced(moments(sum.priced_from, now), moments(sum.priced_to, now)) : '';
  return [times.join(' · '), priced].filter(Boolean).join(' · ');
}

const syncLinks = () =>
  h(
    'div',
    { class: 'actions no-print' },
    h('a', { class: 'button', href: '/portfolio/sync/a', title: t.brokerIs.a }, t.syncA),
    h('a', { class: 'button', href: '/portfolio/sync/b', title: t.brokerIs.b }, t.syncB),
  );
