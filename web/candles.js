// The candles of a symbol: ranges, a cursor that the keyboard moves, and the same as a table.
import { call, withQuery } from './api.js';
import { candles as chart, fit } from './chart.js';
import { figure, simulated } from './figures.js';
import { count, day, price } from './format.js';
import { csvButton, table } from './table.js';
import { text } from './text.js';
import { attr, button, h, put, say, skeleton } from './view.js';

const t = text.candles;
// Trading days of a month, a quarter, half a year, a year, and all that is stored.
const RANGES = /** @type {const} */ ([['1m', 22], ['3m', 65], ['6m', 128], ['1y', 250], ['all', 600]]);

export function showCandles(into, symbol) {
  let days = 65;
  let turn = 0;
  /** @type {(() => void) | undefined} */
  let endFit;
  const picture = h('div', { class: 'picture' }, skeleton(8));
  const readout = h('p', { class: 'readout', role: 'status' }, '\u00a0');
  const own = h('input', { type: 'number', min: '5', max: '600', value: String(days), inputmode: 'numeric' });
  const marks = h('span', null);
  const rows = table({
    name: 'candles', caption: t.caption(symbol), key: (candle) => candle.date, sorted: '-date',
    columns: [
      { of: 'date', label: t.date, show: (c) => day(c.date) },
      ...['open', 'high', 'low', 'close'].map((name) => figure(name, t[name], price, { sort: undefined })),
      figure('volume', t.volume, count),
    ],
  });
  const asTable = h('details', null, h('summary', null, t.asTable), csvButton(rows.csv, `${symbol.replace(':', '-')}.csv`), rows.node);
  const ranges = RANGES.map(([label, n]) => button(label, () => choose(n), { 'aria-pressed': 'false' }));
  own.addEventListener('change', () => choose(Math.min(600, Math.max(5, Math.round(Number(own.value)) || 65))));
  put(into,
    h('div', { class: 'title-row' }, h('h2', null, symbol, ' ', marks),
      h('div', { class: 'filters no-print' }, h('div', { class: 'tabs small', role: 'group', 'aria-label': t.range }, ranges), h('label', null, t.own, ' ', own))),
    picture, readout, asTable);

  const draw = (document) => {
    const list = document.candles;
    const [first, last] = [list[0], list[list.length - 1]];
    put(marks, simulated(document.simulated), document.suspect && h('b', { class: 'mark delayed', title: t.suspectWhy }, t.suspect));
    const sentence = t.sentence(symbol, count(list.length), day(first?.date), day(last?.date), price(last?.close));
    rows.update(list);
    asTable.hidden = list.length === 0;
    endFit?.();
    if (list.length === 0) { put(picture, h('p', { class: 'empty' }, t.none)); say(readout, ''); return; }
    let at = list.length - 1;
    const stage = h('div', { class: 'stage', tabindex: '0', role: 'group', 'aria-label': t.keys });
    /** @type {ReturnType<typeof chart>} */
    let drawn = null;
    const point = (next) => {
      at = Math.max(0, Math.min(list.length - 1, next));
      drawn?.point(at);
      const c = list[at];
      say(readout, t.readout(day(c.date), price(c.open), price(c.high), price(c.low), price(c.close), count(c.volume)));
    };
    stage.addEventListener('pointermove', (event) => { if (drawn) point(drawn.at(event)); });
    stage.addEventListener('keydown', (event) => {
      /** @type {{ [key: string]: number }} */
      const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: list.length - 1, PageUp: at - 20, PageDown: at + 20 };
      if (!(event.key in to)) return;
      event.preventDefault();
      point(to[event.key]);
    });
    put(picture, stage);
    endFit = fit(stage, (width) => {
      drawn = chart(list, sentence, width);
      put(stage, drawn?.node);
      point(at);
    });
  };
  const load = async () => {
    const mine = ++turn;
    try {
      const document = await call(withQuery('/api/market/candles', { symbol, days }));
      if (mine === turn) draw(document);
    } catch (problem) {
      if (mine !== turn) return;
      asTable.hidden = true;
      say(readout, '');
      put(picture, h('p', { class: 'empty' }, problem.code === 'candles_not_found' ? t.notStored : problem.message, ' ',
        problem.code === 'candles_not_found' ? null : button(text.app.again, load, { class: 'link' })));
    }
  };
  const choose = (n) => {
    days = n;
    own.value = String(n);
    ranges.forEach((range, at) => attr(range, 'aria-pressed', String(RANGES[at][1] === n)));
    load();
  };
  choose(days);
  return () => {
    turn = -1;
    endFit?.();
  };
}
