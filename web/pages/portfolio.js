// One portfolio from both brokers: totals, holdings merged by ISIN or by broker, positions.
import { call, serverNow, session } from '../api.js';
import { movedLarge, secret, simulated } from '../figures.js';
import { arrow, day, direction, isoDay, moments, percent, rupees, signedRupees } from '../format.js';
import { byBroker, holdingColumns, merged, partsOf } from '../holdings.js';
import * as live from '../live.js';
import { keep, kept, onAppearance } from '../prefs.js';
import { csvButton, table } from '../table.js';
import { text } from '../text.js';
import { portfolio as t } from '../text/portfolio.js';
import { attr, button, h, memo, pieces, put, say, skeleton, uid } from '../view.js';

export const title = t.title;

/** The service asks the feeds for what was just synced; what it leaves out until then says little. */
const SETTLING_MS = 15_000;
const EVERY_MS = 10_000;
/** Prices come each second; the totals are asked for at most this often. */
const MOVED_MS = 3_000;

export function show({ main }) {
  main.className = 'portfolio';
  const state = {
    by: kept('portfolio view') === 'broker' ? 'broker' : 'isin',
    only: '',
    answer: /** @type {Answer<'/api/portfolio/holdings'> | null} */ (null),
  };
  const worth = h('p', { class: 'worth waiting' }, '\u00a0');
  const today = h('p', { class: 'today' });
  const hero = h('div', { class: 'hero' }, worth, today);
  const totals = h(
    'dl',
    { class: 'totals' },
    Array.from({ length: 3 }, () => h('div', { class: 'waiting' }, h('dt', null, '\u00a0'), h('dd', null, '\u00a0'))),
  );
  const notes = h('p', { class: 'notes' });
  const synced = h('p', { class: 'muted synced' });
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const body = h('div', null, skeleton(10));
  const tabs = /** @type {const} */ (['holdings', 'positions']).map((name) =>
    button(t.tabs[name], () => choose(name), { 'aria-pressed': 'false', 'data-tab': name }),
  );
  const syncs = syncLinks();
  const tabsBox = h('div', { class: 'tabs no-print', role: 'group', 'aria-label': t.tabsLabel }, tabs);
  put(
    main,
    h('div', { class: 'title-row' }, h('h1', null, t.title), syncs),
    hero,
    totals,
    notes,
    synced,
    problem,
    tabsBox,
    body,
  );

  /** @type {(() => void) | null} */
  let endTab = null;
  /** @type {((answer: any) => void) | null} */
  let drawTab = null;
  const choose = (name) => {
    endTab?.();
    drawTab = endTab = null;
    for (const tab of tabs) attr(tab, 'aria-pressed', String(tab.dataset.tab === name));
    if (name === 'positions') endTab = lazily(body, async () => (await import('../positions.js')).showPositions(body));
    else if (state.answer) {
      drawTab = showHoldings(body, state);
      drawTab(state.answer);
    } else put(body, skeleton(10));
  };
  const draw = () => {
    const { answer } = state;
    if (!answer) return;
    const { summary } = answer;
    const isEmpty = !summary.synced.a && !summary.synced.b;
    for (const part of [syncs, hero, totals, notes, synced, tabsBox]) part.hidden = isEmpty;
    drawTotals({ worth, today, totals, notes }, summary, () => {
      state.only = 'without_cost';
      drawTab?.(answer);
    });
    say(synced, timesOf(summary));
    if (!drawTab && !endTab) choose('holdings');
    drawTab?.(answer);
  };
  choose('holdings');
  let askedMs = -MOVED_MS;
  const fetched = live.repeat(async () => {
    askedMs = performance.now();
    try {
      state.answer = await call('/api/portfolio/holdings?live=true');
      problem.hidden = true;
    } catch (failed) {
      problem.hidden = !session.user;
      say(problem, t.notRead(failed.message));
      if (!state.answer) put(body);
      throw failed;
    }
    follow(state.answer);
    draw();
  }, EVERY_MS);
  const onMoved = () => {
    if (state.answer && performance.now() - askedMs > MOVED_MS) fetched.now();
  };
  const ends = [live.on('quotes', onMoved), live.on('tick', draw), onAppearance(draw)];
  return () => {
    fetched.stop();
    endTab?.();
    for (const end of ends) end();
  };
}

/** Shows what comes when it is asked for; returns what ends it, whether it has come by then or not. */
function lazily(into, begin) {
  /** @type {(() => void) | null} */
  let end = null;
  let isOver = false;
  put(into, skeleton(6));
  begin().then(
    (its) => {
      if (isOver) its();
      else end = its;
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

/** The stream wakes the page when the price of a large holding has moved. */
function follow({ holdings }) {
  const largest = holdings
    .filter((one) => !one.unresolved)
    .sort((a, b) => (b.share_pct ?? 0) - (a.share_pct ?? 0))
    .slice(0, 50);
  live.follow([...new Set(largest.map((one) => `${one.exchange}:${one.tradingsymbol}`))].sort());
}

const money = secret(rupees);
const signedMoney = secret(signedRupees);

function drawTotals({ worth, today, totals, notes }, sum, showThem) {
  const now = serverNow();
  const isSettling = now - Date.parse([sum.synced.a, sum.synced.b].filter(Boolean).sort().at(-1) ?? '') < SETTLING_MS;
  worth.classList.remove('waiting');
  say(worth, money(sum.total_current_value));
  const of = sum.day && sum.day !== isoDay(now) ? t.on(day(sum.day)) : t.today;
  const isWaiting = isSettling && sum.without_day_price + sum.without_close > 0;
  const moves = isWaiting ? { text: '…', title: t.settling } : movedLarge(sum.day_pnl, signedMoney, t.noDay);
  memo(today, [of, moves], () => put(today, h('span', { class: 'of' }, of), pieces([moves])));
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

/** When which broker was synced, and from when the prices are. */
function timesOf(sum) {
  const now = serverNow();
  const times = ['a', 'b'].map((name) => {
    const at = sum.synced[name];
    if (!at) return t.neverSynced(name.toUpperCase());
    const old = isoDay(Date.parse(at)) !== isoDay(now) ? ` ⚠ ${t.older}` : '';
    return `${t.syncedAt(name.toUpperCase(), moments(at, now))}${old}`;
  });
  const priced = sum.priced_from ? t.priced(moments(sum.priced_from, now), moments(sum.priced_to, now)) : '';
  return [times.join(' · '), priced].filter(Boolean).join(' · ');
}

function showHoldings(into, state) {
  /** @type {ReturnType<typeof table<any>> | null} */
  let shown = null;
  /** What stands there: nothing yet, the brokers that hold nothing, or the columns. @type {string | null} */
  let built = null;
  const filter = h('input', {
    type: 'search',
    id: 'filter',
    placeholder: t.filter,
    autocomplete: 'off',
    spellcheck: 'false',
    oninput: () => draw(state.answer),
  });
  const counted = h('p', { class: 'muted', role: 'status' });
  const menuId = uid('columns');
  const menu = h('div', { class: 'menu', id: menuId, popover: '' });
  const opener = button(t.columns, null, { class: 'quiet', popovertarget: menuId });
  // A popover stands where the window says: below what has opened it.
  menu.addEventListener('toggle', () => {
    const box = opener.getBoundingClientRect();
    menu.style.left = `${Math.max(8, Math.min(box.left, innerWidth - menu.offsetWidth - 8))}px`;
    menu.style.top = `${Math.max(8, Math.min(box.bottom + 4, innerHeight - menu.offsetHeight - 8))}px`;
  });
  const hidden = new Set((kept('columns portfolio') ?? '').split(',').filter(Boolean));
  const views = ['isin', 'broker'].map((name) => {
    const choice = h('input', { type: 'radio', name: 'view', value: name, checked: state.by === name });
    choice.addEventListener('change', () => {
      state.by = name;
      keep('portfolio view', name);
      draw(state.answer);
    });
    return h('label', null, choice, t.views[name]);
  });
  const place = h('div', { class: 'place' });
  const saved = csvButton(() => shown?.csv() ?? '', 'holdings.csv');
  const bar = h(
    'div',
    { class: 'filters no-print' },
    h('fieldset', null, h('legend', { class: 'unseen' }, t.view), views),
    h('label', { for: 'filter', class: 'unseen' }, t.filter),
    filter,
    opener,
    menu,
    saved,
  );

  const all = holdingColumns();
  put(
    menu,
    all
      .slice(1)
      .filter((column) => !column.phone && !column.fileOnly)
      .map(({ key, of, label }) => {
        const name = key ?? of;
        const box = h('input', { type: 'checkbox', checked: !hidden.has(name) });
        box.addEventListener('change', () => {
          if (!hidden.delete(name)) hidden.add(name);
          keep('columns portfolio', [...hidden].join(',') || null);
          draw(state.answer);
        });
        return h('label', null, box, label);
      }),
  );

  const draw = (answer) => {
    if (!answer.holdings.length) {
      const who = ['a', 'b']
        .filter((name) => answer.summary.synced[name])
        .map((name) => t.broker[name])
        .join(' and ');
      if (built !== who) put(into, who ? h('p', { class: 'empty' }, t.noneAtBroker(who)) : emptyPortfolio());
      built = who;
      return;
    }
    const sign = [state.by, ...hidden].join();
    if (built !== sign) {
      const columns = all.filter(
        (column, at) => at === 0 || column.phone || column.fileOnly || !hidden.has(column.key ?? column.of),
      );
      shown = table({
        name: 'holdings',
        caption: t.caption,
        columns,
        key: (row) => row.key,
        label: (row) => row.tradingsymbol,
        sorted: '-current_value',
        details: partsOf,
        lead: counted,
      });
      if (!bar.isConnected) put(into, bar, place);
      put(place, shown.node);
      built = sign;
    }
    /** @type {any[]} */
    const rows = state.by === 'isin' ? merged(answer) : byBroker(answer);
    const wanted = filter.value.trim().toLowerCase();
    const fits = rows.filter(
      (row) => (!state.only || row.average_price === null) && (!wanted || row.search.includes(wanted)),
    );
    const areSimulated = rows.every((row) => row.simulated);
    memo(counted, [fits.length, rows.length, areSimulated, state.only], () =>
      put(
        counted,
        t.count(fits.length, rows.length),
        ' ',
        simulated(areSimulated),
        state.only && [
          ' ',
          button(
            t.showAll,
            () => {
              state.only = '';
              draw(answer);
            },
            { class: 'link' },
          ),
        ],
      ),
    );
    shown?.update(fits);
  };
  return draw;
}

function emptyPortfolio() {
  return h(
    'section',
    { class: 'first-steps' },
    h('h2', null, t.emptyTitle),
    h('p', null, t.emptyWhy),
    h(
      'ol',
      null,
      t.steps.map((step) => h('li', null, step)),
    ),
    syncLinks(' primary', true),
  );
}

const syncLinks = (kind = '', isNew = false) =>
  h(
    'div',
    { class: 'actions no-print' },
    h(
      'a',
      { class: `button${kind}`, href: '/portfolio/sync/a', title: t.brokerIs.a },
      t.syncA,
      isNew && ` (${t.brokerIs.a})`,
    ),
    h('a', { class: 'button', href: '/portfolio/sync/b', title: t.brokerIs.b }, t.syncB, isNew && ` (${t.brokerIs.b})`),
  );
