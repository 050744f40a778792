// Profit and value over the days: a point for each, and how it came about.
import { explore } from '../charts/chart.js';
import { trend as chart } from '../charts/trend-chart.js';
import { call, serverNow, withQuery } from '../data/api.js';
import { UNKNOWN, axisRupees, day, isKnown, isoDay, rupees, shortDay, signedRupees } from '../data/format.js';
import * as live from '../data/live.js';
import { amountsHidden, keep, kept, onAppearance } from '../data/prefs.js';
import { rebased, runs } from '../data/trend.js';
import { change, figure, moved, secret } from '../parts/figures.js';
import { csvButton, table } from '../parts/table.js';
import { attr, button, h, memo, pieces, put, say, skeleton } from '../parts/view.js';
import { trend as t } from '../text/trend.js';

export const title = t.title;

/** @typedef {typeof import('../data/estimate.js') & { shares: any[] }} Past */

const DAY_MS = 86_400_000;
const BENCHMARK = 'NSE:NIFTY 50';
/** Days of each range, in the order of their names; the year until now has as many as it has. */
const daysOf = [() => 7, () => 30, () => 91, sinceNewYear, () => 365];

export function show({ main }) {
  let range = 1;
  let view = kept('trend view') === 'value' ? 'value' : 'pnl';
  /** @type {Answer<'/api/portfolio/pnl'> | null} */
  let answer = null;
  /** Daily candles of the benchmark; none where none are stored. @type {{ date: string, close: number }[]} */
  let index = [];
  /** What estimates the days before the first point, once it is asked for. @type {Past | null} */
  let past = null;
  let isEstimated = kept('trend estimate') === 'yes';
  /** @type {(() => void) | undefined} */
  let end;
  const ranges = t.ranges.map((name, at) => button(name, () => choose(at)));
  const views = ['pnl', 'value'].map((name) =>
    button(t.views[name], () => {
      view = name;
      keep('trend view', name);
      mark();
      draw();
    }),
  );
  const estimate = button(t.estimate, () => {
    isEstimated = !isEstimated;
    keep('trend estimate', isEstimated ? 'yes' : null);
    mark();
    readPast();
    draw();
  });
  const estimates = h('div', { class: 'tabs small', hidden: true }, estimate);
  const picture = h('div', { class: 'picture' }, skeleton(7));
  const week = h('p', { class: 'lead week' }, '\u00a0');
  const sentence = h('p', { class: 'muted sentence', role: 'status' }, '\u00a0');
  const readout = h('p', { class: 'readout' }, '\u00a0');
  const legend = h('p', { class: 'legend trend-legend' });
  const empty = h('div', { hidden: true });
  const shown = table({
    name: 'trend',
    caption: t.caption,
    plain: true,
    key: (point) => point.date,
    sorted: '-date',
    label: (point) => day(point.date),
    columns: [
      { of: 'date', label: t.date, show: (p) => day(p.date) },
      figure('total_invested', t.invested, money, { rank: 2 }),
      figure('total_current_value', t.value, money),
      change('total_pnl', t.pnl, secret(signedRupees)),
      {
        key: 'of',
        label: t.of,
        rank: 2,
        show: (p) => (p.brokers ? madeOf(p) : { text: UNKNOWN, why: t.notKept }),
        csv: (p) => (p.brokers ? madeOf(p) : ''),
      },
      {
        key: 'how',
        label: t.how,
        rank: 2,
        show: how,
        csv: (p) =>
          how(p)
            .map((bit) => (typeof bit === 'string' ? bit : bit.text))
            .join(''),
      },
    ],
  });
  const asTable = h(
    'details',
    { hidden: true },
    h('summary', null, t.asTable),
    csvButton(shown.filed, 'trend.csv'),
    shown.node,
  );
  const about = h('details', { class: 'muted' }, h('summary', null, t.about), h('p', null, t.what));
  put(
    main,
    h('h1', null, t.title),
    h(
      'div',
      { class: 'title-row no-print' },
      h('div', { class: 'tabs small', role: 'group', 'aria-label': t.view }, views),
      h('div', { class: 'tabs small', role: 'group', 'aria-label': t.range }, ranges),
      estimates,
    ),
    week,
    sentence,
    empty,
    readout,
    picture,
    legend,
    about,
    asTable,
  );

  const draw = () => {
    if (!answer) return;
    const points = answer.trend;
    const isEmpty = points.length === 0;
    empty.hidden = !isEmpty;
    for (const part of [week, picture, readout, legend, asTable]) part.hidden = isEmpty;
    end?.();
    if (isEmpty) {
      estimates.hidden = true;
      put(picture);
      put(
        empty,
        h('p', { class: 'empty' }, t.none),
        h('p', null, h('a', { class: 'button primary', href: '/portfolio' }, t.toPortfolio)),
      );
      say(sentence, '');
      return;
    }
    // Days of the range before the first point, on which the market traded.
    const from = isoDay(serverNow() - daysOf[range]() * DAY_MS);
    const dates = index.map(({ date }) => date).filter((date) => date >= from && date < points[0].date);
    estimates.hidden = view !== 'value' || dates.length < 2 || !isKnown(points[0].total_current_value);
    const made = !estimates.hidden && isEstimated && past ? past.estimated(past.shares, dates, points[0]) : null;
    const drawn = [...(made?.points ?? []), ...points];
    const words = summary(points, view);
    const basis = isEstimated && past && !estimates.hidden && (made ? past.words.of(made, day(points[0].date)) : past.words.none);
    say(sentence, basis ? `${words} ${basis}` : words);
    const ofWeek = answer.week;
    memo(week, [ofWeek, amountsHidden()], () =>
      put(
        week,
        ofWeek
          ? pieces([
              t.weekTo(day(ofWeek.to)),
              moved(ofWeek.pnl_change, secret(signedRupees)),
              t.since(shortDay(ofWeek.from)),
              ...(ofWeek.changed ? [' ', { text: t.notAllGain, kind: 'mark note', why: t.notAllGainWhy }] : []),
            ])
          : t.noWeek,
      ),
    );
    const against = view === 'value' ? rebased(drawn, index) : [];
    const hasIndex = against.some(isKnown);
    const parts = [
      ...t.legend[view],
      ...(made ? (past?.words.legend ?? []) : []),
      ...(hasIndex ? t.legend.index : []),
      ...(runs(points).length > 1 ? t.legend.broken : []),
      ...t.legend.both,
    ];
    memo(legend, parts, () =>
      put(
        legend,
        parts.map(([kind, its, why]) => h('span', { 'data-mark': kind }, pieces([why ? { text: its, why } : its]))),
      ),
    );
    const told = (at) => {
      const p = drawn[at];
      if (p.source === 'estimate') {
        put(readout, past?.words.at(day(p.date), secret(axisRupees)(p.total_current_value)));
        return;
      }
      const bits = t.readout(
        day(p.date),
        money(p.total_current_value),
        money(p.total_invested),
        secret(signedRupees)(p.total_pnl),
      );
      put(
        readout,
        bits.map((its) => h('span', null, its, ' ')),
        h(
          'span',
          { class: 'muted' },
          pieces(how(p).map((bit) => (typeof bit === 'string' ? bit : { ...bit, why: undefined }))),
        ),
      );
    };
    end = explore(picture, {
      label: t.keys,
      count: drawn.length,
      told,
      draw: (width) => ({ ...chart(drawn, { view, against, hidden: amountsHidden(), width }), sentence: words }),
    });
    shown.update(points);
  };
  const fetched = live.repeat(async () => {
    const asked = range;
    const got = await call(`/api/portfolio/pnl?days=${daysOf[asked]()}`);
    if (asked !== range) return;
    answer = got;
    draw();
  }, 300_000);
  const choose = (at) => {
    range = at;
    mark();
    fetched.now();
  };
  const readPast = async () => {
    if (!isEstimated || past) return;
    try {
      const its = await import('../data/estimate.js');
      past = { ...its, shares: await its.sharesWithCloses() };
      draw();
    } catch {
      isEstimated = false;
      mark();
      say(sentence, t.notRead);
    }
  };
  const mark = () => {
    attr(estimate, 'aria-pressed', String(isEstimated));
    ranges.forEach((one, at) => attr(one, 'aria-pressed', String(at === range)));
    views.forEach((one, at) => attr(one, 'aria-pressed', String(['pnl', 'value'][at] === view)));
  };
  mark();
  readPast();
  const stop = onAppearance(draw);
  call(withQuery('/api/market/candles', { symbol: BENCHMARK, days: 300 })).then(
    ({ candles }) => {
      index = candles;
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

/** Days since the first of January in India, at least one. */
function sinceNewYear() {
  const now = serverNow();
  const [year] = isoDay(now).split('-');
  return Math.min(365, Math.max(1, Math.ceil((now - Date.parse(`${year}-01-01T00:00:00+05:30`)) / DAY_MS)));
}

const money = secret(rupees);
const madeOf = (p) => t.madeOf(p.brokers.join('+').toUpperCase(), p.holdings);

function how(p) {
  const bits = [p.source === 'sync' ? `● ${t.sync}` : p.source === 'close' ? `· ${t.close}` : p.source];
  if (p.left_out) bits.push(', ', { text: t.leftOut(p.left_out), kind: 'muted' });
  if (p.carried) bits.push(', ', { text: t.carried(p.carried), kind: 'muted' });
  if (p.discrepancies)
    bits.push(', ', { text: t.discrepancies(p.discrepancies), kind: 'muted', why: t.discrepancyWhy });
  if (p.suspect) bits.push(' ', { text: `⚠ ${t.suspect}`, kind: 'mark delayed', why: t.suspectWhy });
  return bits;
}

/** What the picture shows, in a sentence. */
function summary(points, view) {
  const [first, last] = [points[0], points[points.length - 1]];
  const pnl = secret(signedRupees);
  if (points.length === 1)
    return t.one(view === 'pnl' ? pnl(first.total_pnl) : money(first.total_current_value), day(first.date));
  if (view === 'pnl') return t.pnlFrom(pnl(first.total_pnl), day(first.date), pnl(last.total_pnl), day(last.date));
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
