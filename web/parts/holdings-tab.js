// The tab of the holdings: merged by ISIN or by broker, a filter, and the choice of columns.
import { keep, kept } from '../data/prefs.js';
import { text } from '../text.js';
import { portfolio as t } from '../text/portfolio.js';
import { simulated } from './figures.js';
import { byBroker, holdingColumns, merged } from './holdings.js';
import { csvButton, table } from './table.js';
import { button, h, memo, put, say, uid } from './view.js';

/** Draws what is chosen of the state's answer; returns what draws another one. */
export function showHoldings(into, state) {
  /** @type {ReturnType<typeof table<any>> | null} */
  let shown = null;
  /** What stands there: nothing yet, the brokers that hold nothing, or the columns. @type {string | null} */
  let built = null;
  const filter = h('input', {
    type: 'search',
    id: 'filter',
    placeholder: t.filter,
    autocomplete: 'off',
    spellcheck: 'false',
    oninput: () => draw(state.answer),
  });
  const counted = h('p', { class: 'muted', role: 'status' });
  const all = holdingColumns();
  const menuId = uid('columns');
  const menu = h('div', { class: 'menu', id: menuId, popover: '' });
  const opener = button(t.columns, null, { class: 'quiet', popovertarget: menuId });
  menu.addEventListener('toggle', async () => {
    const { showChoice } = await import('./columns.js');
    showChoice({ menu, opener, columns: all.slice(1), hidden, changed: () => draw(state.answer) });
  });
  const hidden = new Set((kept('columns portfolio') ?? '').split(',').filter(Boolean));
  const views = ['isin', 'broker'].map((name) => {
    const choice = h('input', { type: 'radio', name: 'view', value: name, checked: state.by === name });
    choice.addEventListener('change', () => {
      state.by = name;
      keep('portfolio view', name);
      draw(state.answer);
    });
    return h('label', null, choice, t.views[name]);
  });
  const place = h('div', { class: 'place' });
  const saved = csvButton(() => shown?.filed() ?? { columns: [], rows: [] }, 'holdings.csv');
  const bar = h(
    'div',
    { class: 'filters no-print' },
    h('fieldset', null, h('legend', { class: 'unseen' }, t.view), views),
    h('label', { for: 'filter', class: 'unseen' }, t.filter),
    filter,
    opener,
    menu,
    saved,
  );

  const draw = (answer) => {
    if (!answer.holdings.length) {
      const who = ['a', 'b']
        .filter((name) => answer.summary.synced[name])
        .map((name) => t.broker[name])
        .join(' and ');
      if (built === who) return;
      built = who;
      put(into, h('p', { class: 'empty' }, t.noneAtBroker(who)));
      return;
    }
    const sign = [state.by, ...hidden].join();
    if (built !== sign) {
      const columns = all.filter(
        (column, at) => at === 0 || column.phone || column.fileOnly || !hidden.has(column.key ?? column.of),
      );
      shown = table({
        name: 'holdings',
        caption: t.caption,
        columns,
        key: (row) => row.key,
        label: (row) => row.tradingsymbol,
        sorted: '-current_value',
        details: partsOf,
        lead: counted,
      });
      if (!bar.isConnected) put(into, bar, place);
      put(place, shown.node);
      built = sign;
    }
    /** @type {any[]} */
    const rows = state.by === 'isin' ? merged(answer) : byBroker(answer);
    const wanted = filter.value.trim().toLowerCase();
    const fits = rows.filter(
      (row) => (!state.only || row.average_price === null) && (!wanted || row.search.includes(wanted)),
    );
    const areSimulated = rows.every((row) => row.simulated);
    memo(counted, [fits.length, rows.length, areSimulated, state.only], () =>
      put(
        counted,
        t.count(fits.length, rows.length),
        ' ',
        simulated(areSimulated),
        state.only && [
          ' ',
          button(
            t.showAll,
            () => {
              state.only = '';
              draw(answer);
            },
            { class: 'link' },
          ),
        ],
      ),
    );
    shown?.update(fits);
  };
  return draw;
}

/** What a row is made of; once it has come, it is there at once. */
function partsOf(row) {
  const box = h('div', null);
  import('./holding-parts.js').then(
    (parts) => put(box, parts.partsOf(row)),
    () => say(box, text.problem.offline),
  );
  return box;
}
