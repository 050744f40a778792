// Profit and value over the days: a point for each, and how it came about.
import { explore } from '../charts/chart.js';
import { trend as chart } from '../charts/trend-chart.js';
import { call, serverNow, withQuery } from '../data/api.js';
import { axisRupees } from '../data/axis-format.js';
import { day, isKnown, isoDay, shortDay } from '../data/format.js';
import * as live from '../data/live.js';
import { amountsHidden, keep, kept, onAppearance } from '../data/prefs.js';
import { signedShare } from '../data/ratio-format.js';
import { changes, rebased, runs } from '../data/trend.js';
import { soonMs } from '../parts/awaited.js';
import { moved, secret } from '../parts/figures.js';
import { drawReadout, how, signedMoney, summary } from '../parts/trend-point.js';
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
 * @property {boolean} isIndexRead whether the benchmark was asked for, whatever came
 * @property {boolean} isDrawn
 * @property {boolean} isEstimated
 * @property {boolean} isChosen whether somebody has chosen what is shown; else a new account sees the days before it
 * @property {Estimate & { shares: Share[] } | null} past there once it is asked for
 * @property {PointTable | null} table there once it is opened
 */

const DAY_MS = 86_400_000;
const BENCHMARK = 'NSE:NIFTY 50';
const VIEWS = /** @type {const} */ (['pnl', 'value']);
/** Days of each range, in the order of their names; the year until now has as many as it has. */
const daysOf = [() => 7, () => 30, () => 91, sinceNewYear, () => 365];
const LONGEST = daysOf.length - 1;
/** Until there are as many points, about a month of sessions, a line says little by itself. */
const YOUNG_POINTS = 20;

/** @param {Context} context */
export function show({ main }) {
  /** @type {State} */
  const state = {
    range: 1,
    view: /** @type {View | null} */ (kept('trend view')) ?? 'pnl',
    answer: null,
    index: [],
    isEstimated: kept('trend estimate') === 'yes',
    isChosen: kept('trend view') !== null,
    past: null,
    isIndexRead: false,
    isDrawn: false,
    table: null,
  };
  /** What ends the picture that is shown. @type {(() => void) | void} */
  let end;
  const draw = () => {
    // At first all of it comes at once: what comes by itself would push down the rest.
    const isWhole = state.isIndexRead && (state.past || !state.isEstimated);
    if (!state.answer || !(state.isDrawn || isWhole)) return;
    state.isDrawn = true;
    end?.();
    end = drawAnswer(nodes, state, state.answer);
  };
  const nodes = lay(main, {
    range: (at) => {
      state.range = at;
      state.isChosen = true;
      mark(nodes, state);
      fetched.now();
    },
    view: (name) => {
      state.view = name;
      state.isChosen = true;
      keep('trend view', name);
      mark(nodes, state);
      draw();
    },
    estimate: () => {
      state.isEstimated = !state.isEstimated;
      state.isChosen = true;
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
    if (isYoung(state, answer.trend)) beginLong(nodes, state, draw);
    draw();
  }, 300_000);
  mark(nodes, state);
  readPast(nodes, state, draw);
  const stop = onAppearance(draw);
  const benchmark = live.repeat(() => readIndex(state, draw), 600_000);
  return () => {
    fetched.stop();
    benchmark.stop();
    stop();
    end?.();
  };
}

/** @param {State} state @param {() => void} draw */
async function readIndex(state, draw) {
  const { length } = state.index;
  try {
    const answer = await call(withQuery('/api/market/candles', { symbol: BENCHMARK, days: 300 }));
    state.index = answer.candles;
    return soonMs(answer);
  } finally {
    const isFirst = !state.isIndexRead;
    state.isIndexRead = true;
    if (isFirst || state.index.length !== length) draw();
  }
}

/** Whether an account is so young that its line begins with what its shares were worth before. @param {State} state @param {Point[]} points */
const isYoung = ({ isChosen }, points) => !isChosen && points.length > 0 && points.length < YOUNG_POINTS;

/** @param {Nodes} nodes @param {State} state @param {() => void} draw */
function beginLong(nodes, state, draw) {
  Object.assign(state, { view: 'value', range: LONGEST, isEstimated: true, isChosen: true });
  mark(nodes, state);
  readPast(nodes, state, draw);
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
    draw();
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
    estimates: h('div', { class: 'tabs small no-print', hidden: true }),
    week: h('p', { class: 'lead week waiting' }, '\u00a0'),
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
    ),
    nodes.week,
    nodes.sentence,
    nodes.empty,
    nodes.readout,
    nodes.picture,
    nodes.legend,
    nodes.estimates,
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
  nodes.week.classList.remove('waiting');
  nodes.empty.hidden = !isEmpty;
  for (const part of [nodes.week, nodes.picture, nodes.readout, nodes.legend, nodes.asTable]) part.hidden = isEmpty;
  if (isEmpty) {
    drawEmpty(nodes);
    return undefined;
  }
  const estimated = estimateOf(nodes, state, points);
  const words = summary(points, state.view);
  const beside = comparison(state, estimated, points);
  say(nodes.sentence, [beside, words, basisOf(nodes, state, estimated, points[0])].filter(Boolean).join(' '));
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

/** The change in percent beside the index's, over the days in which nothing came or went. @param {State} state @param {Estimated | null} estimated @param {Point[]} points */
function comparison({ view, index }, estimated, points) {
  const both = view === 'value' ? changes([...(estimated?.points ?? []), ...points], index) : null;
  return both ? t.besideIndex(day(both.since), signedShare(both.own), signedShare(both.index)) : '';
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
