// One portfolio from both brokers: totals, holdings merged by ISIN or by broker, positions.
import { call, serverNow, session } from '../api.js';
import { secret, simulated } from '../figures.js';
import { arrow, day, direction, isoDay, moments, percent, rupees, signedRupees } from '../format.js';
import { byBroker, holdingColumns, merged, partsOf } from '../holdings.js';
import * as live from '../live.js';
import { showPositions } from '../positions.js';
import { keep, kept, onAppearance } from '../prefs.js';
import { csvButton, table } from '../table.js';
import { text } from '../text.js';
import { attr, button, h, put, say, skeleton } from '../view.js';

const t = text.portfolio;
export const title = t.title;

export function show({ main }) {
  main.className = 'portfolio';
  const state = { by: kept('portfolio view') === 'broker' ? 'broker' : 'isin', only: '', document: /** @type {Answer<'/api/portfolio/holdings'> | null} */ (null) };
  const totals = h('dl', { class: 'totals' }, Array.from({ length: 4 }, () => h('div', { class: 'waiting' }, h('dt', null, '\u00a0'), h('dd', null, '\u00a0'))));
  const leftOut = h('p', { class: 'left-out' });
  const synced = h('p', { class: 'muted synced' });
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const body = h('div', null, skeleton(10));
  const tabs = /** @type {const} */ (['holdings', 'positions']).map((name) => button(t.tabs[name], () => choose(name), { 'aria-pressed': 'false', 'data-tab': name }));
  const syncs = syncLinks();
  const tabsBox = h('div', { class: 'tabs no-print', role: 'group', 'aria-label': t.tabsLabel }, tabs);
  put(main,
    h('div', { class: 'title-row' }, h('h1', null, t.title),
      syncs),
    totals, leftOut, synced, problem,
    tabsBox, body);

  /** @type {(() => void) | null} */
  let endTab = null;
  /** @type {((document: any) => void) | null} */
  let drawTab = null;
  const choose = (name) => {
    endTab?.();
    drawTab = endTab = null;
    for (const tab of tabs) attr(tab, 'aria-pressed', String(tab.dataset.tab === name));
    if (name === 'positions') endTab = showPositions(body);
    else if (state.document) { drawTab = showHoldings(body, state); drawTab(state.document); }
    else put(body, skeleton(10));
  };
  const draw = () => {
    const { document } = state;
    if (!document) return;
    const isEmpty = !document.summary.synced.a && !document.summary.synced.b;
    for (const part of [syncs, totals, synced, tabsBox]) part.hidden = isEmpty;
    drawTotals(totals, leftOut, synced, document.summary, () => { state.only = 'without_cost'; drawTab?.(document); });
    if (!drawTab && !endTab) choose('holdings');
    drawTab?.(document);
  };
  choose('holdings');
  const fetched = live.repeat(async () => {
    try {
      state.document = await call('/api/portfolio/holdings?live=true');
      problem.hidden = true;
    } catch (failed) {
      problem.hidden = !session.user;
      say(problem, t.notRead(failed.message));
      throw failed;
    }
    draw();
  }, 10_000);
  const ends = [live.on('tick', draw), onAppearance(draw)];
  return () => { fetched.stop(); endTab?.(); for (const end of ends) end(); };
}

const money = secret(rupees);
const signedMoney = secret(signedRupees);

function drawTotals(totals, leftOut, synced, sum, showThem) {
  const now = serverNow();
  const of = sum.day && sum.day !== isoDay(now) ? t.on(day(sum.day)) : t.today;
  const figures = [
    { name: t.value, value: money(sum.total_current_value), note: '' },
    { name: t.invested, value: money(sum.total_invested), note: '' },
    { name: t.pnl, value: signedMoney(sum.total_pnl), note: percent(sum.total_pnl_pct), moved: sum.total_pnl },
    { name: of, value: signedMoney(sum.day_pnl), note: '', moved: sum.day_pnl, why: sum.day_pnl === null ? t.noDay : '' },
  ];
  figures.forEach(({ name, value, note, moved, why }, at) => {
    const [label, figure] = totals.children[at].children;
    totals.children[at].className = moved === undefined ? '' : direction(moved);
    say(label, name);
    const words = moved === undefined ? value : `${arrow(moved)} ${value}`;
    attr(figure, 'title', why || null);
    if (figure.getAttribute('data-is') === words + note) return;
    attr(figure, 'data-is', words + note);
    put(figure, words, note && note !== '–' && h('small', null, note));
  });
  const parts = [];
  if (sum.without_cost) {
    parts.push(t.withoutCost(sum.without_cost, money(sum.value_without_cost)), ' ', button(t.showThem, showThem, { class: 'link' }), ' ');
  }
  if (sum.without_price) parts.push(t.withoutPrice(sum.without_price), ' ');
  if (sum.without_day_price || sum.without_close) parts.push(t.withoutDay(sum.without_day_price, sum.without_close));
  if (leftOut.textContent !== h('p', null, parts.map((part) => (typeof part === 'string' ? part : t.showThem))).textContent) put(leftOut, parts);
  const times = ['a', 'b'].map((name) => {
    const at = sum.synced[name];
    if (!at) return t.neverSynced(name.toUpperCase());
    const old = isoDay(Date.parse(at)) !== isoDay(now) ? ` ⚠ ${t.older}` : '';
    return `${t.syncedAt(name.toUpperCase(), moments(at, now))}${old}`;
  });
  const priced = sum.priced_from ? t.priced(moments(sum.priced_from, now), moments(sum.priced_to, now)) : '';
  say(synced, [times.join(' · '), priced].filter(Boolean).join(' · '));
}

function showHoldings(into, state) {
  /** @type {ReturnType<typeof table<any>> | null} */
  let shown = null;
  let built = '';
  const filter = h('input', { type: 'search', id: 'filter', autocomplete: 'off', spellcheck: 'false', oninput: () => draw(state.document) });
  const counted = h('p', { class: 'muted', role: 'status' });
  const columnsBox = h('div', { class: 'menu' });
  const hidden = new Set((kept('columns portfolio') ?? '').split(',').filter(Boolean));
  const views = ['isin', 'broker'].map((name) => {
    const choice = h('input', { type: 'radio', name: 'view', value: name, checked: state.by === name });
    choice.addEventListener('change', () => { state.by = name; keep('portfolio view', name); draw(state.document); });
    return h('label', null, choice, t.views[name]);
  });
  const place = h('div', { class: 'place' });
  const saved = csvButton(() => shown?.csv() ?? '', 'holdings.csv');
  const bar = h('div', { class: 'filters no-print' }, h('fieldset', null, h('legend', { class: 'unseen' }, t.view), views),
    h('label', { for: 'filter' }, t.filter), filter,
    h('details', { class: 'columns' }, h('summary', null, t.columns), columnsBox), saved);

  const all = holdingColumns();
  const drawMenu = () => put(columnsBox, all.slice(1).map(({ key, label }) => {
    const box = h('input', { type: 'checkbox', checked: !hidden.has(key) });
    box.addEventListener('change', () => {
      if (!hidden.delete(key)) hidden.add(key);
      keep('columns portfolio', [...hidden].join(',') || null);
      draw(state.document);
    });
    return h('label', null, box, label);
  }));
  drawMenu();

  const draw = (document) => {
    if (!document.holdings.length) { if (built !== 'empty') put(into, emptyPortfolio()); built = 'empty'; return; }
    const sign = [state.by, ...hidden].join();
    if (built !== sign) {
      const columns = all.filter(({ key }, at) => at === 0 || !hidden.has(key));
      shown = table({ name: 'holdings', caption: t.caption, columns, key: (row) => row.key, sorted: '-current_value', details: partsOf });
      if (!bar.isConnected) put(into, bar, counted, place);
      put(place, shown.node);
      built = sign;
    }
    /** @type {any[]} */
    const rows = state.by === 'isin' ? merged(document) : byBroker(document);
    const wanted = filter.value.trim().toLowerCase();
    const kept = rows.filter((row) => (!state.only || row.average_price === null) && (!wanted || row.search.includes(wanted)));
    put(counted, t.count(kept.length, rows.length), ' ', simulated(rows.every((row) => row.simulated)),
      state.only && [' ', button(t.showAll, () => { state.only = ''; draw(document); }, { class: 'link' })]);
    shown?.update(kept);
  };
  return draw;
}

function emptyPortfolio() {
  return h('section', { class: 'first-steps' },
    h('h2', null, t.emptyTitle), h('p', null, t.emptyWhy),
    h('ol', null, t.steps.map((step) => h('li', null, step))),
    syncLinks(' primary'));
}

const syncLinks = (kind = '') => h('div', { class: 'actions no-print' },
  h('a', { class: `button${kind}`, href: '/portfolio/sync/a' }, t.syncA), h('a', { class: 'button', href: '/portfolio/sync/b' }, t.syncB));
