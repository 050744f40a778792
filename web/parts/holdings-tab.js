// The tab of the holdings: merged by ISIN or by broker, a filter, and the choice of columns.
import { keep, kept } from '../data/prefs.js';
import { text } from '../text.js';
import { portfolio as t } from '../text/portfolio.js';
import { simulated } from './figures.js';
import { byBroker, holdingColumns, merged } from './holdings.js';
import { csvButton, table } from './table.js';
import { button, h, memo, put, say, uid } from './view.js';

/** @typedef {ReturnType<typeof import('./table.js').table<any>>} Table */
/** @typedef {Answer<'/api/portfolio/holdings'>} Holdings */
/** What is chosen, and of which answer. @typedef {{ by: 'isin' | 'broker', only: string, answer: Holdings | null }} State */

/**
 * Draws what is chosen of the state's answer; returns what draws another one.
 * @param {HTMLElement} into
 * @param {State} state
 */
export function showHoldings(into, state) {
  const all = holdingColumns();
  const hidden = new Set((kept('columns portfolio') ?? '').split(',').filter(Boolean));
  /** @type {Table | null} */
  let shown = null;
  /** What stands there: nothing yet, the brokers that hold nothing, or the columns. @type {string | null} */
  let built = null;
  const counted = h('p', { class: 'muted', role: 'status' });
  const place = h('div', { class: 'place' });
  const redraw = () => {
    if (state.answer) draw(state.answer);
  };
  const filter = h('input', {
    type: 'search',
    id: 'filter',
    placeholder: t.filter,
    autocomplete: 'off',
    spellcheck: 'false',
    oninput: redraw,
  });
  const bar = h(
    'div',
    { class: 'filters no-print' },
    viewsOf(state, redraw),
    h('label', { for: 'filter', class: 'unseen' }, t.filter),
    filter,
    columnMenu(all, hidden, redraw),
    csvButton(() => shown?.filed() ?? { columns: [], rows: [] }, 'holdings.csv'),
  );

  /** @param {Holdings} answer */
  const draw = (answer) => {
    const who = answer.holdings.length ? null : emptyAt(answer);
    const sign = who ?? [state.by, ...hidden].join();
    if (built !== sign) {
      built = sign;
      if (who !== null) put(into, h('p', { class: 'empty' }, t.noneAtBroker(who)));
      else {
        shown = tableOf(all, hidden, counted);
        if (!bar.isConnected) put(into, bar, place);
        put(place, shown.node);
      }
    }
    if (who !== null) return;
    const rows = state.by === 'isin' ? merged(answer) : byBroker(answer);
    const fits = fitting(rows, state, filter.value);
    drawCount(counted, { fits, rows, state, redraw });
    shown?.update(fits);
  };
  return draw;
}

/** Merged, or by broker. @param {State} state @param {() => void} redraw */
function viewsOf(state, redraw) {
  const views = /** @type {const} */ (['isin', 'broker']).map((name) => {
    const choice = h('input', { type: 'radio', name: 'view', value: name, checked: state.by === name });
    choice.addEventListener('change', () => {
      state.by = name;
      keep('portfolio view', name);
      redraw();
    });
    return h('label', null, choice, t.views[name]);
  });
  return h('fieldset', null, h('legend', { class: 'unseen' }, t.view), views);
}

/** The choice of columns, and what opens it. @param {Column<any>[]} all @param {Set<string>} hidden @param {() => void} changed */
function columnMenu(all, hidden, changed) {
  const id = uid('columns');
  const menu = h('div', { class: 'menu', id, popover: '' });
  const opener = button(t.columns, null, { class: 'quiet', popovertarget: id });
  menu.addEventListener('toggle', async () => {
    const { showChoice } = await import('./columns.js');
    showChoice({ menu, opener, columns: all.slice(1), hidden, changed });
  });
  return [opener, menu];
}

/** The brokers that were synced and hold nothing. @param {Holdings} answer */
const emptyAt = ({ summary }) =>
  /** @type {const} */ (['a', 'b'])
    .filter((name) => summary.synced[name])
    .map((name) => t.broker[name])
    .join(' and ');

/** @param {Column<any>[]} all @param {Set<string>} hidden @param {Element} lead */
const tableOf = (all, hidden, lead) =>
  table({
    name: 'holdings',
    caption: t.caption,
    columns: all.filter(
      (column, at) => at === 0 || column.phone || column.fileOnly || !hidden.has(column.key ?? column.of ?? ''),
    ),
    key: (row) => row.key,
    label: (row) => row.tradingsymbol,
    sorted: '-current_value',
    details: partsOf,
    lead,
  });

/** @param {any[]} rows @param {State} state @param {string} typed */
function fitting(rows, state, typed) {
  const wanted = typed.trim().toLowerCase();
  return rows.filter((row) => (!state.only || row.average_price === null) && (!wanted || row.search.includes(wanted)));
}

/** @param {Element} counted @param {{ fits: any[], rows: any[], state: State, redraw: () => void }} what */
function drawCount(counted, { fits, rows, state, redraw }) {
  const areSimulated = rows.every((row) => row.simulated);
  memo(counted, [fits.length, rows.length, areSimulated, state.only], () => {
    const showAll = () => {
      state.only = '';
      redraw();
    };
    put(
      counted,
      t.count(fits.length, rows.length),
      ' ',
      simulated(areSimulated),
      state.only && [' ', button(t.showAll, showAll, { class: 'link' })],
    );
  });
}

/** @type {typeof import('./holding-parts.js') | null} */
let parts = null;

/** What a row is made of; once the module has come, it is there at once. @param {any} row */
function partsOf(row) {
  if (parts) return parts.partsOf(row);
  const box = h('div', null);
  import('./holding-parts.js').then(
    (its) => {
      parts = its;
      put(box, its.partsOf(row));
    },
    () => say(box, text.problem.offline),
  );
  return box;
}
