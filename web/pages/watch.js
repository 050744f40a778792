// The watch lists with their prices: those of the account, or of who is not logged in the one of this browser.
import { serverNow, session } from '../data/api.js';
import { moments, percent, price, signedPrice, time } from '../data/format.js';
import * as live from '../data/live.js';
import * as watched from '../data/watchlists.js';
import { combobox } from '../parts/combobox.js';
import { ageMark, change as changeColumn, isOpen, simulated } from '../parts/figures.js';
import { attempt, problemPlace } from '../parts/form.js';
import { csvButton, table } from '../parts/table.js';
import { attr, button, h, memo, pathOf, put, say, skeleton, uid } from '../parts/view.js';
import { text } from '../text.js';
import { watch as t } from '../text/watch.js';

export const title = t.title;

const LIVE = { live: true };
/** As wide as what comes, so that nothing moves. */
const PENDING = { text: '…', kind: 'pending', title: t.waiting };
/** Another tab or device may have changed the lists; they are read when the tab is looked at, too. */
const EVERY_MS = 300_000;

/** @type {Map<string, string | null>} names that were learnt from searches in this visit */
const names = new Map();
/** The list that is shown, as long as the tab is open. @type {number | string | undefined} */
let chosen;

export function show({ main, announce }) {
  const list = () => watched.listOf(chosen);
  const symbols = () => list().symbols;
  const note = h('p', { class: 'muted', role: 'status' });
  const problem = problemPlace();
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
      ...[
        { of: 'last_price', label: t.last, number: true, live: true, at: 'b', show: lastOf },
        changeColumn('change', t.change, signedPrice, text.noClose, { ...LIVE, at: 'told' }),
        changeColumn('change_pct', t.changePct, percent, text.noClose, { ...LIVE, at: 'd' }),
        { key: 'as_of', label: t.asOf, number: true, at: 'c', show: stateOf, csv: (row) => row.as_of },
      ].map(({ show, ...column }) => ({ ...column, show: (row) => (row.isWaiting ? PENDING : show(row)) })),
      {
        key: 'actions',
        label: '',
        control: (current) =>
          h(
            'span',
            { class: 'row-actions' },
            grip(current),
            button('↑', () => moveBy(current().symbol, -1), { class: 'quiet', 'aria-label': t.up(current().symbol) }),
            button('↓', () => moveBy(current().symbol, 1), { class: 'quiet', 'aria-label': t.down(current().symbol) }),
            button('✕', () => remove(current().symbol), { class: 'quiet', 'aria-label': t.remove(current().symbol) }),
          ),
      },
    ],
  });
  shown.node.addEventListener('keydown', (event) => {
    if (!event.altKey || !['ArrowUp', 'ArrowDown'].includes(event.key)) return;
    const line = event.target instanceof Element ? event.target.closest('tr') : null;
    const at = line ? rows().indexOf(line) : -1;
    if (at < 0) return;
    event.preventDefault();
    moveBy(shown.shown()[at].symbol, event.key === 'ArrowUp' ? -1 : 1);
  });
  const empty = h('p', { class: 'empty', hidden: true }, t.none);
  const tabs = h('div', { class: 'tabs', role: 'group', 'aria-label': t.lists });
  const tools = h('span', { class: 'row-actions' });
  const body = h(
    'div',
    null,
    tabs,
    h(
      'div',
      { class: 'filters' },
      h('label', { for: 'search' }, t.add),
      h('div', { class: 'with combo' }, search.input, search.list),
      tools,
      csvButton(shown.filed, 'watch.csv'),
    ),
    empty,
    shown.node,
  );
  const place = h('div', null, skeleton(8));
  put(
    main,
    h(
      'div',
      { class: 'title-row' },
      h('h1', null, t.title),
      !session.user && h('p', { class: 'muted' }, h('a', { href: '/login' }, t.logIn), ' ', t.logInWhy),
    ),
    problem,
    place,
  );

  /** What is done with lists as a whole, for an account. @type {any} */
  let lists = null;
  const draw = () => {
    const all = symbols().map((symbol) => ({ symbol, ...(live.valueOf(`quote ${symbol}`) ?? { isWaiting: true }) }));
    empty.hidden = all.length > 0;
    shown.node.hidden = all.length === 0;
    const isMade = all.length > 0 && all.every((row) => row.simulated);
    memo(note, [all.length, isMade], () => put(note, t.count(all.length), ' ', simulated(isMade)));
    shown.update(all);
  };
  const refresh = () => {
    chosen = watched.keyOf(list());
    const all = watched.lists();
    tabs.hidden = all.length < 2;
    memo(tabs, [all.map((one) => [watched.keyOf(one), one.name]), chosen], () => put(tabs, all.map(tabOf)));
    lists?.draw();
    // A fixed order lets streams with the same list share the work.
    live.follow([...symbols()].sort());
    draw();
  };
  const tabOf = (one) => {
    const key = watched.keyOf(one);
    const press = () => {
      choose(key);
      tabs.querySelector('[aria-pressed=true]')?.focus();
    };
    return button(one.name, press, { 'aria-pressed': String(key === chosen) });
  };
  /** Shows a change at once; what it has come to is told once it is stored. */
  const edit = (what, words) =>
    attempt([], problem, async () => {
      const doing = watched.change(what);
      refresh();
      try {
        announce((await doing) ? words() : t.gone);
      } finally {
        refresh();
      }
    });
  const add = (symbol) => {
    search.input.value = '';
    if (symbols().includes(symbol)) announce(t.already(symbol));
    else if (watched.isFull(list())) {
      announce(t.full);
      memo(note, t.full, () => say(note, t.full));
    } else edit(watched.withSymbol(chosen, symbol), () => t.added(symbol));
  };
  const remove = (symbol) => {
    edit(watched.withoutSymbol(chosen, symbol), () => t.removed(symbol));
    search.input.focus();
  };
  /** The symbol comes to where another one stands. */
  const move = (symbol, other) => {
    if (other === undefined || other === symbol) return;
    /** @type {any} */
    const focused = document.activeElement;
    edit(watched.withMoved(chosen, symbol, other), () =>
      t.movedTo(symbol, symbols().indexOf(symbol) + 1, symbols().length),
    );
    focused?.focus(); // a row that moved takes its focus along
  };
  const moveBy = (symbol, by) => move(symbol, symbols()[symbols().indexOf(symbol) + by]);
  const rows = () => [...shown.node.querySelectorAll('tbody > tr:not(.details)')];
  /** A row is taken by its grip and put where the finger leaves it; the arrows do the same by keys. */
  function grip(current) {
    const node = h('span', { class: 'grip', title: t.drag, 'aria-hidden': 'true' }, '⠿');
    const under = ({ clientY }) => {
      const at = rows().findIndex((row) => row.getBoundingClientRect().bottom > clientY);
      return at < 0 ? symbols().length - 1 : at;
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
      mark(-1);
      move(current().symbol, shown.shown()[under(event)].symbol);
    });
    node.addEventListener('pointercancel', () => mark(-1));
    return node;
  }

  const begin = () => {
    if (!body.isConnected) put(place, body);
    refresh();
  };
  const choose = (key) => {
    chosen = key;
    refresh();
  };
  let isOver = false;
  if (!session.user) {
    watched.readOwn();
    begin();
  }
  const loaded = live.repeat(async () => {
    try {
      await watched.read();
      if (session.user && !lists) {
        const { listTools } = await import('../parts/lists.js');
        lists = listTools({ list, choose, edit, problem, announce, focus: () => search.input.focus() });
        tools.append(...lists.buttons);
        body.prepend(lists.offer);
      }
    } catch (failure) {
      if (!body.isConnected) put(place, h('p', { class: 'problem', role: 'alert' }, `${failure.message} ${text.retried}`));
      throw failure;
    }
    if (!isOver) begin();
  }, EVERY_MS);
  const ends = [live.on('quotes', () => body.isConnected && draw()), live.on('tick', () => body.isConnected && draw())];
  return () => {
    isOver = true;
    loaded.stop();
    for (const end of ends) end();
  };
}

function lastOf(row) {
  if (row.unavailable) return { text: t.unavailable, kind: 'muted', why: t.unavailableWhy };
  return price(row.last_price);
}

function stateOf(row) {
  if (!row.as_of) return ['–'];
  return [isOpen() ? time(row.as_of) : moments(row.as_of, serverNow()), ...ageMark(row)];
}
