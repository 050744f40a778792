// Profit and loss over the days: a point for each, and how it came about.
import { call } from '../api.js';
import { trend as chart, fit } from '../chart.js';
import { change, figure, secret } from '../figures.js';
import { UNKNOWN, day, isKnown, rupees, signedRupees } from '../format.js';
import * as live from '../live.js';
import { amountsHidden, onAppearance } from '../prefs.js';
import { csvButton, table } from '../table.js';
import { text } from '../text.js';
import { attr, button, h, put, say, skeleton } from '../view.js';

const t = text.trend;
export const title = t.title;

const RANGES = [30, 90, 365];

export function show({ main }) {
  let days = 30;
  /** @type {Answer<'/api/portfolio/pnl'> | null} */
  let document = null;
  /** @type {(() => void) | undefined} */
  let endFit;
  const ranges = RANGES.map((n) => button(t.days(n), () => choose(n)));
  const own = h('input', { type: 'number', min: '1', max: '365', value: '30', inputmode: 'numeric' });
  own.addEventListener('change', () => choose(Math.min(365, Math.max(1, Math.round(Number(own.value)) || 30))));
  const picture = h('div', { class: 'picture' }, skeleton(8));
  const sentence = h('p', { class: 'lead', role: 'status' }, '\u00a0');
  const empty = h('div', { hidden: true });
  const shown = table({
    name: 'trend', caption: t.caption, key: (point) => point.date, sorted: '-date',
    columns: [
      { of: 'date', label: t.date, show: (p) => day(p.date) },
      figure('total_invested', text.portfolio.invested, money), figure('total_current_value', text.portfolio.value, money),
      change('total_pnl', text.portfolio.pnl, secret(signedRupees)),
      { key: 'of', label: t.of, show: (p) => (p.brokers ? t.madeOf(p.brokers.join('+').toUpperCase(), p.holdings) : { text: UNKNOWN, title: t.notKept }),
        csv: (p) => (p.brokers ? t.madeOf(p.brokers.join('+').toUpperCase(), p.holdings) : '') },
      { key: 'how', label: t.how, show: how, csv: (p) => how(p).map((bit) => (typeof bit === 'string' ? bit : bit.text)).join('') },
    ],
  });
  shown.node.hidden = true;
  put(main,
    h('div', { class: 'title-row' }, h('h1', null, t.title)),
    h('div', { class: 'filters no-print' }, h('div', { class: 'tabs small', role: 'group', 'aria-label': t.range }, ranges),
      h('label', null, t.own, ' ', own), csvButton(shown.csv, 'trend.csv')),
    h('p', { class: 'muted' }, t.what), sentence, empty, picture,
    h('p', { class: 'legend trend-legend' }, t.legend.map(([kind, words]) => h('span', { 'data-mark': kind }, words))), shown.node);

  const draw = () => {
    if (!document) return;
    const points = document.trend;
    const isEmpty = points.length === 0;
    empty.hidden = !isEmpty;
    for (const part of [picture, shown.node, main.querySelector('.trend-legend')]) part.hidden = isEmpty;
    if (isEmpty) {
      put(picture);
      put(empty, h('p', { class: 'empty' }, t.none), h('p', null, h('a', { class: 'button primary', href: '/portfolio' }, t.toPortfolio)));
      say(sentence, '');
      return;
    }
    const words = summary(points);
    say(sentence, words);
    endFit?.();
    endFit = fit(picture, (width) => put(picture, chart(points, words, amountsHidden(), width)));
    shown.update(points);
  };
  const fetched = live.repeat(async () => {
    const asked = days;
    const answer = await call(`/api/portfolio/pnl?days=${asked}`);
    if (asked !== days) return;
    document = answer;
    draw();
  }, 300_000);
  const choose = (n) => {
    days = n;
    own.value = String(n);
    mark();
    fetched.now();
  };
  const mark = () => ranges.forEach((one, at) => attr(one, 'aria-pressed', String(RANGES[at] === days)));
  mark();
  const end = onAppearance(draw);
  return () => { fetched.stop(); end(); endFit?.(); };
}

const money = secret(rupees);

function how(p) {
  const bits = [p.source === 'sync' ? `● ${t.sync}` : p.source === 'close' ? `· ${t.close}` : p.source];
  if (p.left_out) bits.push(', ', { text: t.leftOut(p.left_out), kind: 'muted' });
  if (p.carried) bits.push(', ', { text: t.carried(p.carried), kind: 'muted' });
  if (p.discrepancies) bits.push(', ', { text: t.discrepancies(p.discrepancies), kind: 'muted', title: t.discrepancyWhy });
  if (p.suspect) bits.push(' ', { text: `⚠ ${t.suspect}`, kind: 'mark delayed', title: t.suspectWhy });
  return bits;
}

/** What the picture shows, in a sentence. */
function summary(points) {
  const [first, last] = [points[0], points[points.length - 1]];
  const known = points.filter((p) => isKnown(p.total_current_value));
  const low = known.reduce((least, p) => (p.total_current_value < least.total_current_value ? p : least), known[0]);
  if (points.length === 1) return t.one(money(first.total_current_value), day(first.date));
  return t.sentence(money(first.total_current_value), day(first.date), money(last.total_current_value), day(last.date), money(low.total_current_value), day(low.date));
}
