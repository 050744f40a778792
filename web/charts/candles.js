// The candles of a symbol: ranges, a cursor, and the same as a table.
import { call, withQuery } from '../data/api.js';
import { UNKNOWN, count, day, price } from '../data/format.js';
import { figure, simulated } from '../parts/figures.js';
import { csvButton, table } from '../parts/table.js';
import { attr, button, h, memo, pieces, put, skeleton } from '../parts/view.js';
import { text } from '../text.js';
import { candles as t } from '../text/candles.js';
import { candles as chart } from './candle-chart.js';
import { explore } from './chart.js';

/** Trading days of each range; the last is all that is stored. @type {[string, number][]} */
const RANGES = [
  ['1M', 22],
  ['3M', 65],
  ['6M', 128],
  ['1Y', 250],
  ['max', 600],
];

const YEAR = 250;

/** `loaded` is told the candles of a year, newest last; the returned `last` draws the price of now. */
export function showCandles(into, symbol, loaded = (_list) => {}) {
  let days = 128;
  let isOver = false;
  /** @type {Answer<'/api/market/candles'> | null} */
  let answer = null;
  /** @type {number | null} */
  let last = null;
  /** @type {(() => void) | undefined} */
  let end;
  const picture = h('div', { class: 'picture' }, skeleton(7));
  const readout = h('p', { class: 'readout', role: 'status' }, '\u00a0');
  const marks = h('span', { class: 'marks' });
  const rows = table({
    name: 'candles',
    caption: t.caption(symbol),
    plain: true,
    key: (candle) => candle.date,
    sorted: '-date',
    columns: [
      { of: 'date', label: t.date, show: (c) => day(c.date) },
      ...['open', 'high', 'low', 'close'].map((name) => figure(name, t[name], price, { sort: undefined })),
      figure('volume', t.volume, (value) => (value ? count(value) : { text: UNKNOWN, why: t.untraded }), { rank: 2 }),
    ],
  });
  const asTable = h(
    'details',
    { hidden: true },
    h('summary', null, t.asTable),
    csvButton(rows.filed, `${symbol.replace(':', '-')}.csv`),
    rows.node,
  );
  const ranges = RANGES.map(([label, n]) => button(label, () => choose(n), { 'aria-pressed': 'false' }));
  put(
    into,
    h(
      'div',
      { class: 'title-row' },
      h('h2', null, t.title, ' ', marks),
      h('div', { class: 'tabs small no-print', role: 'group', 'aria-label': t.range }, ranges),
    ),
    readout,
    picture,
    asTable,
  );

  const draw = () => {
    if (!answer) return;
    const list = answer.candles.slice(-days);
    memo(marks, [answer.simulated, answer.suspect], () =>
      put(
        marks,
        simulated(answer?.simulated),
        answer?.suspect && pieces([{ text: t.suspect, kind: 'mark delayed', why: t.suspectWhy }]),
      ),
    );
    asTable.hidden = list.length === 0;
    end?.();
    if (list.length === 0) {
      put(picture, h('p', { class: 'empty' }, t.none));
      return;
    }
    rows.update(list);
    const sentence = t.sentence(
      symbol,
      count(list.length),
      day(list[0].date),
      day(list[list.length - 1].date),
      price(list[list.length - 1].close),
    );
    const told = (at) => {
      const c = list[at];
      put(
        readout,
        [
          ...t.readout(day(c.date), price(c.open), price(c.high), price(c.low), price(c.close)),
          // An index has none.
          ...(c.volume ? [t.readVolume(count(c.volume))] : []),
        ].map((words) => h('span', null, words, ' ')),
      );
    };
    end = explore(picture, {
      label: t.keys,
      count: list.length,
      told,
      draw: (width) => ({ ...chart(list, { last, width }), sentence }),
    });
  };
  const load = async () => {
    try {
      answer = await call(withQuery('/api/market/candles', { symbol, days: RANGES[RANGES.length - 1][1] }));
      if (isOver) return;
      loaded(answer.candles.slice(-YEAR));
      draw();
    } catch (problem) {
      if (isOver) return;
      const isMissing = problem.code === 'candles_not_found';
      put(
        picture,
        h(
          'p',
          { class: 'empty' },
          isMissing ? t.notStored : problem.message,
          ' ',
          !isMissing && button(text.app.again, load, { class: 'link' }),
        ),
      );
    }
  };
  const choose = (n) => {
    days = n;
    ranges.forEach((range, at) => attr(range, 'aria-pressed', String(RANGES[at][1] === n)));
    draw();
  };
  choose(days);
  load();
  return {
    /** The price of now: its line moves with it, where it has moved enough to be seen. */
    last(now) {
      const isFirst = last === null;
      if (now === null || now === last) return;
      const moved = isFirst || Math.abs(now - (last ?? now)) > Math.abs(now) * 0.0005;
      if (!moved) return;
      last = now;
      // A cursor that somebody moves is not taken away.
      if (!picture.matches(':hover, :focus-within')) draw();
    },
    end: () => {
      isOver = true;
      end?.();
    },
  };
}
