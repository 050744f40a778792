// One table for all pages: sorting, rows that are patched and never rebuilt, CSV of what is shown. On a phone a row is
// two or three lines; what has no room there, or not in a narrow window, opens below the row.
import { amountsHidden, keep, kept } from '../data/prefs.js';
import { text } from '../text.js';
import { attr, button, flash, h, keyed, memo, pieces, put } from './view.js';

const t = text.table;

/** @template Row @param {Shape<Row>} shape */
export function table(shape) {
  /** @type {any[]} */
  const listed = shape.columns.map((column) => {
    const { of } = column;
    const read = of && ((row) => row[of]);
    const whole = read ? { key: of, sort: read, csv: read, ...column } : column;
    return shape.isFixed || column.phone ? { ...whole, sort: undefined } : whole;
  });
  const columns = listed.filter((column) => !column.fileOnly);
  /** Columns that some width leaves out: they open below the row. */
  const folded = columns.filter((column) => !column.phone && ((column.rank ?? 1) > 1 || (!shape.plain && !column.at)));
  const opens = Boolean(shape.details) || folded.length > 0;
  /** @type {Map<string, { node: Element, handle: any }>} */
  const rows = new Map();
  /** @type {Set<string>} */
  const open = new Set();
  /** @type {Row[]} */
  let shown = [];
  /** @type {Row[]} */
  let given = [];
  const remembered = kept(`sort ${shape.name}`) ?? shape.sorted ?? '';
  let [by, down] = [remembered.replace(/^-/, ''), remembered.startsWith('-')];

  const sortBy = (key, isDown) => {
    [by, down] = [key, isDown];
    keep(`sort ${shape.name}`, `${down ? '-' : ''}${by}`);
    draw();
  };
  // Figures are wanted largest first, names from A.
  const naturally = (column) => column.number === true;
  const rankOf = ({ rank = 1 }) => (rank > 1 ? `rank${rank}` : '');
  const classOf = (column) =>
    [
      column.number && 'number',
      column.wide && 'wide',
      column.label === '' && 'acts',
      column.phone && 'phone',
      rankOf(column),
    ]
      .filter(Boolean)
      .join(' ') || null;

  const headings = columns.map((column) => {
    const heading = h('th', { role: 'columnheader', scope: 'col', class: classOf(column), title: column.hint });
    if (column.sort) {
      heading.append(
        button(column.label, () => sortBy(column.key, by === column.key ? !down : naturally(column))),
        h('span', { class: 'unsorted' }, column.label),
      );
    } else heading.append(column.label === '' ? h('span', { class: 'unseen' }, t.actions) : column.label);
    return heading;
  });
  const sortable = columns.filter((column) => column.sort);
  // The headings of a phone are not shown: there a list chooses the order.
  const choice = h(
    'select',
    null,
    !shape.sorted && h('option', { value: '' }, t.asListed),
    sortable.map((column) => h('option', { value: column.key }, column.label)),
  );
  choice.addEventListener('change', () => {
    const column = sortable.find(({ key }) => key === choice.value);
    sortBy(column?.key ?? '', column ? naturally(column) : false);
  });
  const body = h('tbody', { role: 'rowgroup' });
  const node = h(
    'div',
    { class: 'table' },
    (shape.lead || (sortable.length > 0 && !shape.plain)) &&
      h(
        'div',
        { class: 'above' },
        shape.lead,
        sortable.length > 0 &&
          !shape.plain &&
          h('label', { class: 'sort-by no-print' }, h('span', { class: 'unseen' }, t.sortBy), choice),
      ),
    h(
      'table',
      { role: 'table', class: shape.plain ? 'plain' : 'lines' },
      h('caption', { class: 'unseen' }, shape.caption),
      h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, headings)),
      body,
    ),
  );

  function sorted(list) {
    const column = columns.find(({ key }) => key === by);
    if (!column?.sort) return list;
    const read = column.sort;
    const sign = down ? -1 : 1;
    return [...list].sort((one, other) => {
      const [a, b] = [read(one), read(other)];
      // What is not known stands at the end, whichever way is sorted.
      if (a === null || a === undefined) return b === null || b === undefined ? 0 : 1;
      if (b === null || b === undefined) return -1;
      return sign * (typeof a === 'string' ? a.localeCompare(String(b), 'en-IN') : a - Number(b));
    });
  }

  function make(first) {
    let row = first;
    const opener = opens
      ? button('▸', () => toggle(row, opener), {
          class: shape.details ? 'opener' : 'opener folded',
          'aria-expanded': 'false',
          'aria-label': t.open(shape.label?.(first) ?? shape.key(first)),
        })
      : null;
    /** @type {(Node | null)[]} */
    const controls = [];
    const cells = columns.map((column, at) => {
      const cell = h('td', {
        role: 'cell',
        'data-at': column.at?.length === 1 ? column.at : null,
        'data-label': column.at === 'e' ? column.label : null,
        class: classOf(column),
      });
      const control = column.control?.(() => row);
      if (at === 0 && opener) cell.append(opener);
      if (control) cell.append(control);
      controls.push(control ?? (at === 0 ? opener : null));
      return cell;
    });
    const line = h('tr', { role: 'row' }, cells);
    // A finger takes the whole row; keys and screen readers have the button.
    line.addEventListener('click', (event) => {
      const target = event.target instanceof Element ? event.target : null;
      if (!opener?.checkVisibility() || target?.closest('a, button, input, .grip') || String(getSelection())) return;
      toggle(row, opener);
    });
    /** @type {string[]} */
    const signs = [];
    return {
      node: line,
      handle: {
        set: (next) => {
          row = next;
          patch(line, cells, controls, signs, next);
        },
      },
    };
  }

  function patch(line, cells, controls, signs, row) {
    attr(line, 'class', shape.kind?.(row) || null);
    columns.forEach((column, at) => {
      if (!column.show) return;
      const bits = [column.show(row)].flat();
      const sign = JSON.stringify(bits);
      if (signs[at] === sign) return;
      const isFirst = signs[at] === undefined;
      signs[at] = sign;
      if (controls[at]) while (controls[at]?.nextSibling) controls[at]?.nextSibling?.remove();
      else cells[at].replaceChildren();
      cells[at].append(...pieces(bits));
      if (!isFirst && column.live) flash(cells[at]);
    });
  }

  function draw() {
    columns.forEach((column, at) => {
      if (column.sort)
        attr(headings[at], 'aria-sort', column.key === by ? (down ? 'descending' : 'ascending') : 'none');
    });
    choice.value = by;
    shown = sorted(given);
    body.classList.toggle('many', shown.length > 200);
    const items = shown.flatMap((row) => {
      const key = shape.key(row);
      return open.has(key)
        ? [
            { key, row },
            { key: `${key} details`, row },
          ]
        : [{ key, row }];
    });
    keyed(
      body,
      rows,
      items,
      ({ key }) => key,
      (item) => (item.key === shape.key(item.row) ? make(item.row) : makeDetails()),
      (handle, { row }) => handle.set(row),
    );
  }

  function makeDetails() {
    const cell = h('td', { role: 'cell', colspan: columns.length });
    const set = (row) => memo(cell, [row, amountsHidden()], () => put(cell, rest(row), shape.details?.(row) ?? null));
    return {
      node: h('tr', { role: 'row', class: shape.details ? 'details' : 'details folded' }, cell),
      handle: { set },
    };
  }

  /** The columns that this width leaves out, with their names. */
  const rest = (row) =>
    h(
      'dl',
      { class: 'rest' },
      folded.map((column) => {
        const only = [rankOf(column), shape.plain ? '' : column.at ? 'told' : 'unplaced'].filter(Boolean).join(' ');
        const control = column.control?.(() => row);
        if (column.label === '') return h('div', { class: `acts ${only}` }, control);
        return h(
          'div',
          { class: only },
          h('dt', null, column.label),
          h('dd', null, control, column.show && pieces([column.show(row)].flat())),
        );
      }),
    );

  /** Opens or closes what belongs to a row. */
  function toggle(row, opener) {
    const key = shape.key(row);
    if (!open.delete(key)) open.add(key);
    attr(opener, 'aria-expanded', String(open.has(key)));
    draw();
  }

  return {
    node,
    update(list) {
      given = list;
      draw();
    },
    shown: () => shown,
    /** The columns and rows of a file of the table as it stands. */
    filed: () => ({ columns: listed.filter(({ csv, phone }) => csv && !phone), rows: shown }),
  };
}

/** The button that saves a table; what writes the file comes when it is pressed. */
export const csvButton = (filed, name) =>
  button(
    t.csv,
    async () => {
      const { save, written } = await import('../data/csv.js');
      save(name, `\uFEFF${written(filed())}`, 'text/csv;charset=utf-8');
    },
    { class: 'quiet' },
  );
