// Profit and value over the days: a point for each, and how it came about.
import { explore } from '../charts/chart.js';
import { trend as chart } from '../charts/trend-chart.js';
import { call, serverNow, withQuery } from '../data/api.js';
import { axisRupees } from '../data/axis-format.js';
import { day, isKnown, isoDay, rupees, shortDay, signedRupees } from '../data/format.js';
import * as live from '../data/live.js';
import { amountsHidden, keep, kept, onAppearance } from '../data/prefs.js';
import { rebased, runs } from '../data/trend.js';
import { moved, secret } from '../parts/figures.js';
import { attr, button, h, memo, pieces, put, say, skeleton } from '../parts/view.js';
import { text } from '../text.js';
import { trend as t } from '../text/trend.js';

export const title = t.title;

/** What estimates the days before the first point. @typedef {typeof import('../data/estimate.js')} Estimate */
/** @typedef {NonNullable<ReturnType<Estimate['estimated']>>} Estimated */
/** @typedef {ReturnType<typeof import('../parts/trend-table.js').trendTable>} PointTable */
/** @typedef {'pnl' | 'value'} View */
/** @typedef {ReturnType<typeof lay>} Nodes */

/**
 * @typedef {object} State
 * @property {number} range at which of the ranges
 * @property {View} view
 * @property {Answer<'/api/portfolio/pnl'> | null} answer
 * @property {{ date: string, close: number }[]} index daily candles of the benchmark; none where none are stored
 * @property {boolean} isEstimated
 * @property {Estimate & { shares: Share[] } | null} past there once it is asked for
 * @property {PointTable | null} table there once it is opened
 */

const DAY_MS = 86_400_000;
const BENCHMARK = 'NSE:NIFTY 50';
const VIEWS = /** @type {const} */ (['pnl', 'value']);
/** Days of each range, in the order of their names; the year until now has as many as it has. */
const daysOf = [() => 7, () => 30, () => 91, sinceNewYear, () => 365];
const money = secret(rupees);
const signedMoney = secret(signedRupees);

/** @param {Context} context */
export function show({ main }) {
  /** @type {State} */
  const state = {
    range: 1,
    view: kept('trend view') === 'value' ? 'value' : 'pnl',
    answer: null,
    index: [],
    isEstimated: kept('trend estimate') === 'yes',
    past: null,
    table: null,
  };
  /** What ends the picture that is shown. @type {(() => void) | void} */
  let end;
  const draw = () => {
    if (!state.answer) return;
    end?.();
    end = drawAnswer(nodes, state, state.answer);
  };
  const nodes = lay(main, {
    range: (at) => {
      state.range = at;
      mark(nodes, state);
      fetched.now();
    },
    view: (name) => {
      state.view = name;
      keep('trend view', name);
      mark(nodes, state);
      draw();
    },
    estimate: () => {
      state.isEstimated = !state.isEstimated;
      keep('trend estimate', state.isEstimated ? 'yes' : null);
      mark(nodes, state);
      readPast(nodes, state, draw);
      draw();
    },
    table: () => openTable(nodes, state),
  });
  const fetched = live.repeat(async () => {
    const asked = state.range;
    const answer = await call(`/api/portfolio/pnl?days=${daysOf[asked]()}`);
    if (asked !== state.range) return;
    state.answer = answer;
    draw();
  }, 300_000);
  mark(nodes, state);
  readPast(nodes, state, draw);
  const stop = onAppearance(draw);
  call(withQuery('/api/market/candles', { symbol: BENCHMARK, days: 300 })).then(
    ({ candles }) => {
      state.index = candles;
      draw();
    },
    () => {},
  );
  return () => {
    fetched.stop();
    stop();
    end?.();
  };
}

/** Reads what the estimate is made of, once. @param {Nodes} nodes @param {State} state @param {() => void} draw */
async function readPast(nodes, state, draw) {
  if (!state.isEstimated || state.past) return;
  try {
    const its = await import('../data/estimate.js');
    state.past = { ...its, shares: await its.sharesWithCloses() };
    draw();
  } catch {
    state.isEstimated = false;
    mark(nodes, state);
    say(nodes.sentence, t.notRead);
  }
}

/**
 * Lays out the page.
 * @param {HTMLElement} main
 * @param {{ range: (at: number) => void, view: (name: View) => void, estimate: () => void, table: () => void }} act
 */
function lay(main, act) {
  const nodes = {
    ranges: t.ranges.map((name, at) => button(name, () => act.range(at))),
    views: VIEWS.map((name) => button(t.views[name], () => act.view(name))),
    estimate: button(t.estimate, act.estimate),
    estimates: h('div', { class: 'tabs small', hidden: true }),
    week: h('p', { class: 'lead week' }, '\u00a0'),
    sentence: h('p', { class: 'muted sentence', role: 'status' }, '\u00a0'),
    empty: h('div', { hidden: true }),
    readout: h('p', { class: 'readout' }, '\u00a0'),
    picture: h('div', { class: 'picture' }, skeleton(7)),
    legend: h('p', { class: 'legend trend-legend' }),
    asTable: h('details', { hidden: true, ontoggle: act.table }, h('summary', null, t.asTable)),
  };
  nodes.estimates.append(nodes.estimate);
  put(
    main,
    h('h1', null, t.title),
    h(
      'div',
      { class: 'title-row no-print' },
      h('div', { class: 'tabs small', role: 'group', 'aria-label': t.view }, nodes.views),
      h('div', { class: 'tabs small', role: 'group', 'aria-label': t.range }, nodes.ranges),
      nodes.estimates,
    ),
    nodes.week,
    nodes.sentence,
    nodes.empty,
    nodes.readout,
    nodes.picture,
    nodes.legend,
    h('details', { class: 'muted' }, h('summary', null, t.about), h('p', null, t.what)),
    nodes.asTable,
  );
  return nodes;
}

/** Shows what is chosen. @param {Nodes} nodes @param {State} state */
function mark({ estimate, ranges, views }, { isEstimated, range, view }) {
  attr(estimate, 'aria-pressed', String(isEstimated));
  ranges.forEach((one, at) => attr(one, 'aria-pressed', String(at === range)));
  views.forEach((one, at) => attr(one, 'aria-pressed', String(VIEWS[at] === view)));
}

/** Draws all of it; returns what ends the picture. @param {Nodes} nodes @param {State} state @param {Answer<'/api/portfolio/pnl'>} answer */
function drawAnswer(nodes, state, { trend: points, week }) {
  const isEmpty = points.length === 0;
  nodes.empty.hidden = !isEmpty;
  for (const part of [nodes.week, nodes.picture, nodes.readout, nodes.legend, nodes.asTable]) part.hidden = isEmpty;
  if (isEmpty) {
    drawEmpty(nodes);
    return undefined;
  }
  const estimated = estimateOf(nodes, state, points);
  const words = summary(points, state.view);
  say(nodes.sentence, [words, basisOf(nodes, state, estimated, points[0])].filter(Boolean).join(' '));
  drawWeek(nodes.week, week);
  state.table?.update(points);
  return drawPicture(nodes, state, { points, estimated, words });
}

/** @param {Nodes} nodes */
function drawEmpty({ estimates, picture, empty, sentence }) {
  estimates.hidden = true;
  put(picture);
  put(
    empty,
    h('p', { class: 'empty' }, t.none),
    h('p', null, h('a', { class: 'button primary', href: '/portfolio' }, t.toPortfolio)),
  );
  say(sentence, '');
}

/**
 * The days of the range before the first point on which the market traded, where they are asked for and can be told.
 * @param {Nodes} nodes
 * @param {State} state
 * @param {Point[]} points
 */
function estimateOf({ estimates }, { range, view, index, isEstimated, past }, points) {
  const from = isoDay(serverNow() - daysOf[range]() * DAY_MS);
  const dates = index.map(({ date }) => date).filter((date) => date >= from && date < points[0].date);
  estimates.hidden = view !== 'value' || dates.length < 2 || !isKnown(points[0].total_current_value);
  return !estimates.hidden && isEstimated && past ? past.estimated(past.shares, dates, points[0]) : null;
}

/** What the estimate stands on. @param {Nodes} nodes @param {State} state @param {Estimated | null} estimated @param {Point} first */
function basisOf({ estimates }, { isEstimated, past }, estimated, first) {
  if (!isEstimated || !past || estimates.hidden) return '';
  return estimated ? past.words.of(estimated, day(first.date)) : past.words.none;
}

/** @param {HTMLElement} node @param {Answer<'/api/portfolio/pnl'>['week']} week */
function drawWeek(node, week) {
  memo(node, [week, amountsHidden()], () =>
    put(
      node,
      week
        ? pieces([
            t.weekTo(day(week.to)),
            moved(week.pnl_change, signedMoney),
            t.since(shortDay(week.from)),
            ...(week.changed ? [' ', { text: t.notAllGain, kind: 'mark note', why: t.notAllGainWhy }] : []),
          ])
        : t.noWeek,
    ),
  );
}

/**
 * The picture with its legend; returns what ends it.
 * @param {Nodes} nodes
 * @param {State} state
 * @param {{ points: Point[], estimated: Estimated | null, words: string }} drawn
 */
function drawPicture({ picture, legend, readout }, { view, index, past }, { points, estimated, words }) {
  const all = [...(estimated?.points ?? []), ...points];
  const against = view === 'value' ? rebased(all, index) : [];
  const parts = [
    ...t.legend[view],
    ...(estimated ? (past?.words.legend ?? []) : []),
    ...(against.some(isKnown) ? t.legend.index : []),
    ...(runs(points).length > 1 ? t.legend.broken : []),
    ...t.legend.both,
  ];
  memo(legend, parts, () =>
    put(
      legend,
      parts.map(([kind, its, why]) => h('span', { 'data-mark': kind }, pieces([why ? { text: its, why } : its]))),
    ),
  );
  return explore(picture, {
    label: t.keys,
    count: all.length,
    told: (at) => {
      const p = all[at];
      if (p.source !== 'estimate') drawReadout(readout, p);
      else put(readout, past?.words.at(day(p.date), secret(axisRupees)(p.total_current_value)));
    },
    draw: (width) => ({ ...chart(all, { view, against, hidden: amountsHidden(), width }), sentence: words }),
  });
}

/** What is at a point. @param {HTMLElement} node @param {Point} p */
function drawReadout(node, p) {
  const bits = t.readout(day(p.date), money(p.total_current_value), money(p.total_invested), signedMoney(p.total_pnl));
  const plain = how(p).map((bit) => (typeof bit === 'string' ? bit : { ...bit, why: undefined }));
  put(
    node,
    bits.map((its) => h('span', null, its, ' ')),
    h('span', { class: 'muted' }, pieces(plain)),
  );
}

/** @param {Nodes} nodes @param {State} state */
async function openTable({ asTable }, state) {
  if (!asTable.open || state.table) return;
  asTable.querySelector('.problem')?.remove();
  try {
    const { trendTable } = await import('../parts/trend-table.js');
    state.table ??= trendTable(how);
    asTable.append(...state.table.nodes);
    state.table.update(state.answer?.trend ?? []);
  } catch {
    asTable.append(h('p', { class: 'problem', role: 'alert' }, text.problem.offline));
  }
}

/** Days since the first of January in India, at least one. */
function sinceNewYear() {
  const now = serverNow();
  const [year] = isoDay(now).split('-');
  return Math.min(365, Math.max(1, Math.ceil((now - Date.parse(`${year}-01-01T00:00:00+05:30`)) / DAY_MS)));
}

/** How a point came about. @param {Point} p @returns {Bit[]} */
function how(p) {
  /** @type {Bit[]} */
  const bits = [p.source === 'sync' ? `● ${t.sync}` : p.source === 'close' ? `· ${t.close}` : p.source];
  if (p.left_out) bits.push(', ', { text: t.leftOut(p.left_out), kind: 'muted' });
  if (p.carried) bits.push(', ', { text: t.carried(p.carried), kind: 'muted' });
  if (p.discrepancies)
    bits.push(', ', { text: t.discrepancies(p.discrepancies), kind: 'muted', why: t.discrepancyWhy });
  if (p.suspect) bits.push(' ', { text: `⚠ ${t.suspect}`, kind: 'mark delayed', why: t.suspectWhy });
  return bits;
}

/** What the picture shows, in a sentence. @param {Point[]} points @param {View} view */
function summary(points, view) {
  const first = points[0];
  const last = points[points.length - 1];
  if (points.length === 1)
    return t.one(view === 'pnl' ? signedMoney(first.total_pnl) : money(first.total_current_value), day(first.date));
  if (view === 'pnl')
    return t.pnlFrom(signedMoney(first.total_pnl), day(first.date), signedMoney(last.total_pnl), day(last.date));
  const known = points.filter((p) => isKnown(p.total_current_value));
  const low = known.reduce((least, p) => (p.total_current_value < least.total_current_value ? p : least), known[0]);
  return t.valueFrom(
    money(first.total_current_value),
    day(first.date),
    money(last.total_current_value),
    day(last.date),
    money(low.total_current_value),
    day(low.date),
  );
}
