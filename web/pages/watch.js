// The watch lists with their prices: those of the account, or of who is not logged in the one of this browser.
import { session } from '../data/api.js';
import { called } from '../data/format.js';
import * as live from '../data/live.js';
import { learn, learnNames } from '../data/names.js';
import * as watched from '../data/watchlists.js';
import { combobox } from '../parts/combobox.js';
import { simulated } from '../parts/figures.js';
import { attempt, problemPlace } from '../parts/form.js';
import { csvButton } from '../parts/table.js';
import { button, h, memo, put, say, skeleton } from '../parts/view.js';
import { watchTable } from '../parts/watch-table.js';
import { text } from '../text.js';
import { watch as t } from '../text/watch.js';

export const title = t.title;

/** Another tab or device may have changed the lists; they are read when the tab is looked at, too. */
const EVERY_MS = 300_000;

/** The list that is shown, as long as the tab is open. @type {number | string | undefined} */
let chosen;

const list = () => watched.listOf(chosen);
const symbols = () => list().symbols;

/** @typedef {ReturnType<typeof lay>} Nodes */
/** @typedef {ReturnType<typeof actions>} Acts */
/** What is done with lists as a whole, for an account. @typedef {ReturnType<typeof import('../parts/lists.js').listTools>} Tools */

/** @param {Context} context */
export function show({ main, announce }) {
  const nodes = lay(main, {
    choose: (symbol, name) => {
      learn(symbol, name);
      acts.add(symbol);
    },
    moveBy: (symbol, by) => acts.moveBy(symbol, by),
    remove: (symbol) => acts.remove(symbol),
  });
  let isOver = false;
  /** @type {Tools | null} */
  let tools = null;
  const draw = () => drawRows(nodes);
  const refresh = () => {
    chosen = watched.keyOf(list());
    drawTabs(nodes.tabs, choose);
    tools?.draw();
    // A fixed order lets streams with the same list share the work.
    live.follow([...symbols()].sort());
    draw();
    learnNames(symbols()).then((isAny) => isAny && !isOver && draw());
  };
  /** @param {number | string} key */
  const choose = (key) => {
    chosen = key;
    refresh();
  };
  const acts = actions(nodes, refresh, announce);
  import('../parts/reorder.js').then(
    ({ reorder }) => reorder(nodes.shown, acts),
    () => {},
  );
  const begin = () => {
    if (!nodes.body.isConnected) put(nodes.place, nodes.body);
    refresh();
  };
  if (!session.user) {
    watched.readOwn();
    begin();
  }
  const loaded = live.repeat(async () => {
    try {
      await watched.read();
      if (session.user && !tools) {
        const { listTools } = await import('../parts/lists.js');
        const { problem, search } = nodes;
        tools = listTools({ list, choose, edit: acts.edit, problem, announce, focus: () => search.input.focus() });
        nodes.tools.append(...tools.buttons);
        nodes.body.prepend(tools.offer);
      }
    } catch (failure) {
      if (!nodes.body.isConnected)
        put(nodes.place, h('p', { class: 'problem', role: 'alert' }, `${failure.message} ${text.retried}`));
      throw failure;
    }
    if (!isOver) begin();
  }, EVERY_MS);
  const onPrices = () => nodes.body.isConnected && draw();
  const ends = [live.on('quotes', onPrices), live.on('tick', onPrices)];
  return () => {
    isOver = true;
    loaded.stop();
    for (const end of ends) end();
  };
}

/**
 * Lays out the page.
 * @param {HTMLElement} main
 * @param {{
 *   choose: (symbol: string, name: string | null) => void,
 *   moveBy: (symbol: string, by: number) => void,
 *   remove: (symbol: string) => void,
 * }} act
 */
function lay(main, act) {
  const note = h('p', { class: 'muted', role: 'status' });
  const problem = problemPlace();
  const search = combobox({ name: 'search', placeholder: t.search, choose: act.choose });
  search.input.id = 'search';
  const shown = watchTable(note, act);
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
  return { note, problem, search, shown, empty, tabs, tools, body, place };
}

/** @param {Nodes} nodes */
function drawRows({ note, shown, empty }) {
  const all = symbols().map((symbol) => ({ symbol, ...(live.valueOf(`quote ${symbol}`) ?? { isWaiting: true }) }));
  empty.hidden = all.length > 0;
  shown.node.hidden = all.length === 0;
  const isMade = all.length > 0 && all.every((row) => row.simulated);
  memo(note, [all.length, isMade], () => put(note, t.count(all.length), ' ', simulated(isMade)));
  shown.update(all);
}

/** A tab for each list, where there is more than one. @param {HTMLElement} tabs @param {(key: number | string) => void} choose */
function drawTabs(tabs, choose) {
  const all = watched.lists();
  tabs.hidden = all.length < 2;
  const tabOf = (/** @type {List} */ one) => {
    const key = watched.keyOf(one);
    const press = () => {
      choose(key);
      /** @type {HTMLElement | null} */ (tabs.querySelector('[aria-pressed=true]'))?.focus();
    };
    return button(one.name, press, { 'aria-pressed': String(key === chosen) });
  };
  memo(tabs, [all.map((one) => [watched.keyOf(one), one.name]), chosen], () => put(tabs, all.map(tabOf)));
}

/** What is done with the symbols of the list. @param {Nodes} nodes @param {() => void} refresh @param {Context['announce']} announce */
function actions({ note, problem, search }, refresh, announce) {
  /**
   * Shows a change at once; what it has come to is told once it is stored.
   * @param {Parameters<typeof watched.change>[0]} what
   * @param {() => string} words
   */
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
  /** The symbol comes to where another one stands. @param {string} symbol @param {string | undefined} other */
  const move = (symbol, other) => {
    if (other === undefined || other === symbol) return;
    /** @type {any} */
    const focused = document.activeElement;
    edit(watched.withMoved(chosen, symbol, other), () =>
      t.movedTo(called(symbol), symbols().indexOf(symbol) + 1, symbols().length),
    );
    focused?.focus(); // a row that moved takes its focus along
  };
  return {
    edit,
    move,
    /** @param {string} symbol @param {number} by */
    moveBy: (symbol, by) => move(symbol, symbols()[symbols().indexOf(symbol) + by]),
    /** @param {string} symbol */
    add: (symbol) => {
      search.input.value = '';
      if (symbols().includes(symbol)) announce(t.already(called(symbol)));
      else if (watched.isFull(list())) {
        announce(t.full);
        memo(note, t.full, () => say(note, t.full));
      } else edit(watched.withSymbol(chosen, symbol), () => t.added(called(symbol)));
    },
    /** @param {string} symbol */
    remove: (symbol) => {
      edit(watched.withoutSymbol(chosen, symbol), () => t.removed(called(symbol)));
      search.input.focus();
    },
  };
}
