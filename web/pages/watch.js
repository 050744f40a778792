// The user's own list of symbols with their prices.
import { serverNow } from '../api.js';
import { combobox } from '../combobox.js';
import { ageMark, change, isOpen, simulated } from '../figures.js';
import { moments, percent, price, signedPrice, time } from '../format.js';
import * as live from '../live.js';
import { isWatchListFull, setWatched, watched } from '../prefs.js';
import { csvButton, table } from '../table.js';
import { text } from '../text.js';
import { watch as t } from '../text/watch.js';
import { button, h, memo, pathOf, put, say } from '../view.js';

export const title = t.title;

const LIVE = { live: true };

/** @type {Map<string, string | null>} names that were learnt from searches in this visit */
const names = new Map();

export function show({ main, announce }) {
  let symbols = watched();
  const note = h('p', { class: 'muted', role: 'status' });
  const search = combobox({
    name: 'search',
    placeholder: t.search,
    choose: (symbol, name) => {
      names.set(symbol, name);
      add(symbol);
    },
  });
  search.input.id = 'search';
  const shown = table({
    name: 'watch',
    caption: t.caption,
    key: (row) => row.symbol,
    lead: note,
    columns: [
      {
        of: 'symbol',
        label: t.symbol,
        wide: true,
        at: 'a',
        show: (row) => [
          { text: row.symbol, kind: 'symbol', href: pathOf(row.symbol) },
          ...(names.get(row.symbol) ? [' ', { text: names.get(row.symbol) ?? '', kind: 'muted' }] : []),
        ],
      },
      { of: 'last_price', label: t.last, number: true, live: true, at: 'b', show: lastOf },
      change('change', t.change, signedPrice, text.noClose, { ...LIVE, at: 'told' }),
      change('change_pct', t.changePct, percent, text.noClose, { ...LIVE, at: 'd' }),
      { key: 'as_of', label: t.asOf, number: true, at: 'c', show: stateOf, csv: (row) => row.as_of },
      {
        key: 'actions',
        label: '',
        control: (current) =>
          h(
            'span',
            { class: 'row-actions' },
            grip(current),
            button('↑', () => move(current().symbol, -1), { class: 'quiet', 'aria-label': t.up(current().symbol) }),
            button('↓', () => move(current().symbol, 1), { class: 'quiet', 'aria-label': t.down(current().symbol) }),
            button('✕', () => remove(current().symbol), { class: 'quiet', 'aria-label': t.remove(current().symbol) }),
          ),
      },
    ],
  });
  const empty = h('p', { class: 'empty', hidden: true }, t.none);
  put(
    main,
    h('h1', null, t.title),
    h(
      'div',
      { class: 'filters' },
      h('label', { for: 'search' }, t.add),
      h('div', { class: 'with combo' }, search.input, search.list),
      csvButton(shown.filed, 'watch.csv'),
    ),
    empty,
    shown.node,
  );

  const draw = () => {
    const rows = symbols.map((symbol) => ({ symbol, ...(live.valueOf(`quote ${symbol}`) ?? { isWaiting: true }) }));
    empty.hidden = rows.length > 0;
    shown.node.hidden = rows.length === 0;
    const all = rows.length > 0 && rows.every((row) => row.simulated);
    memo(note, [rows.length, all], () => put(note, t.count(rows.length), ' ', simulated(all)));
    shown.update(rows);
  };
  const changed = () => {
    setWatched(symbols);
    // A fixed order lets streams with the same list share the work.
    live.follow([...symbols].sort());
    draw();
  };
  const add = (symbol) => {
    search.input.value = '';
    if (symbols.includes(symbol)) {
      announce(t.already(symbol));
      return;
    }
    if (isWatchListFull()) {
      announce(t.full);
      memo(note, t.full, () => say(note, t.full));
      return;
    }
    symbols = [...symbols, symbol];
    announce(t.added(symbol));
    changed();
  };
  const remove = (symbol) => {
    symbols = symbols.filter((one) => one !== symbol);
    announce(t.removed(symbol));
    changed();
    search.input.focus();
  };
  /** A row is taken by its grip and put where the finger leaves it; the arrows do the same by keys. */
  function grip(current) {
    const node = h('span', { class: 'grip', title: t.drag, 'aria-hidden': 'true' }, '⠿');
    const rows = () => [...shown.node.querySelectorAll('tbody > tr:not(.details)')];
    const under = ({ clientY }) => {
      const at = rows().findIndex((row) => row.getBoundingClientRect().bottom > clientY);
      return at < 0 ? symbols.length - 1 : at;
    };
    const mark = (at) => rows().forEach((row, index) => row.classList.toggle('drop', index === at));
    node.addEventListener('pointerdown', (event) => {
      event.preventDefault();
      node.setPointerCapture(event.pointerId);
    });
    node.addEventListener('pointermove', (event) => {
      if (node.hasPointerCapture(event.pointerId)) mark(under(event));
    });
    node.addEventListener('pointerup', (event) => {
      const target = shown.shown()[under(event)].symbol;
      mark(-1);
      move(current().symbol, symbols.indexOf(target) - symbols.indexOf(current().symbol));
    });
    node.addEventListener('pointercancel', () => mark(-1));
    return node;
  }
  const move = (symbol, by) => {
    const from = symbols.indexOf(symbol);
    const to = from + by;
    if (by === 0 || to < 0 || to >= symbols.length) return;
    symbols = symbols.toSpliced(from, 1).toSpliced(to, 0, symbol);
    /** @type {any} */
    const focused = document.activeElement;
    changed();
    focused?.focus(); // a row that moved takes its focus along
  };
  live.follow([...symbols].sort());
  draw();
  const ends = [live.on('quotes', draw), live.on('tick', draw)];
  return () => {
    for (const end of ends) end();
  };
}

function lastOf(row) {
  if (row.unavailable) return { text: t.unavailable, kind: 'muted', why: t.unavailableWhy };
  return row.isWaiting ? { text: '…', title: t.waiting } : price(row.last_price);
}

function stateOf(row) {
  if (!row.as_of) return ['–'];
  return [isOpen() ? time(row.as_of) : moments(row.as_of, serverNow()), ...ageMark(row)];
}
