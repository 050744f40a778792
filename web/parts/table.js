// One table for all pages: sorting, rows that are patched and never rebuilt, CSV of what is shown. On a phone a row is
// two or three lines; what has no room there, or not in a narrow window, opens below the row.
import { amountsHidden, keep, kept } from '../data/prefs.js';
import { text } from '../text.js';
import { attr, button, flash, h, keyed, memo, pieces, put } from './view.js';

const t = text.table;
/** With more rows than these a browser lays out only those that are near. */
const MANY = 200;

/** @typedef {{ by: string, down: boolean }} Order */
/** @typedef {(by: string, down: boolean) => void} SortBy */
/** @typedef {Column<any>} AnyColumn */
/** A table with the columns that are shown, and of these the ones that some width leaves out. @typedef {Shape<any> & { folded: AnyColumn[] }} Whole */

/** @template Row @param {Shape<Row>} shape */
export function table(shape) {
  const listed = shape.columns.map((column) => completed(column, shape.isFixed));
  const columns = listed.filter((column) => !column.fileOnly);
  const folded = columns.filter((column) => !column.phone && (rankOf(column) > 1 || (!shape.plain && !column.at)));
  /** @type {Whole} */
  const whole = { ...shape, columns, folded };
  const [, minus, by] = /^(-?)(.*)/.exec(kept(`sort ${shape.name}`) ?? shape.sorted ?? '') ?? [];
  const order = { by, down: minus !== '' };
  /** @type {Map<string, { node: Element, handle: any }>} */
  const rows = new Map();
  /** @type {Set<string>} */
  const open = new Set();
  /** @type {Row[]} */
  let shown = [];
  /** @type {Row[]} */
  let given = [];

  /** @type {SortBy} */
  const sortBy = (key, down) => {
    Object.assign(order, { by: key, down });
    keep(`sort ${shape.name}`, `${down ? '-' : ''}${key}`);
    draw();
  };
  /** Opens or closes what belongs to a row. @param {Row} row @param {Element} opener */
  const toggle = (row, opener) => {
    const key = shape.key(row);
    if (!open.delete(key)) open.add(key);
    attr(opener, 'aria-expanded', String(open.has(key)));
    draw();
  };
  const headings = columns.map((column) => headingOf(column, order, sortBy));
  const choice = choiceOf(whole, sortBy);
  const body = h('tbody', { role: 'rowgroup' });

  function draw() {
    markOrder(columns, headings, order);
    choice.value = order.by;
    shown = ordered(given, columns.find(({ key }) => key === order.by)?.sort, order.down);
    body.classList.toggle('many', shown.length > MANY);
    const items = shown.flatMap((row) => {
      const key = shape.key(row);
      const own = { key, row, isBelow: false };
      return open.has(key) ? [own, { key: `${key} details`, row, isBelow: true }] : [own];
    });
    keyed(
      body,
      rows,
      items,
      (item) => item.key,
      ({ row, isBelow }) => (isBelow ? makeBelow(whole) : makeRow(whole, row, toggle)),
      (handle, { row }) => handle.set(row),
    );
  }

  return {
    node: frameOf(whole, choice, headings, body),
    /** @param {Row[]} list */
    update(list) {
      given = list;
      draw();
    },
    shown: () => shown,
    /** The columns and rows of a file of the table as it stands. */
    filed: () => ({ columns: listed.filter(({ csv, phone }) => csv && !phone), rows: shown }),
  };
}

/** A column with what follows from `of`. @param {AnyColumn} column @param {boolean | undefined} isFixed @returns {AnyColumn} */
function completed(column, isFixed) {
  const { of } = column;
  const read = of && ((/** @type {any} */ row) => row[of]);
  const whole = read ? { key: of, sort: read, csv: read, ...column } : column;
  return isFixed || column.phone ? { ...whole, sort: undefined } : whole;
}

/**
 * The rows in order. What is not known stands at the end, whichever way is sorted.
 * @template Row
 * @param {Row[]} rows
 * @param {AnyColumn['sort']} read
 * @param {boolean} down
 */
export function ordered(rows, read, down) {
  if (!read) return rows;
  const sign = down ? -1 : 1;
  return [...rows].sort((one, other) => {
    const a = read(one);
    const b = read(other);
    if (a === null || a === undefined) return b === null || b === undefined ? 0 : 1;
    if (b === null || b === undefined) return -1;
    return sign * (typeof a === 'string' ? a.localeCompare(String(b), 'en-IN') : a - Number(b));
  });
}

/** Figures are wanted largest first, names from A. @param {AnyColumn} column */
const naturally = (column) => column.number === true;
/** @param {AnyColumn} column */
const rankOf = ({ rank = 1 }) => rank;
/** @param {AnyColumn} column */
const rankClass = (column) => (rankOf(column) > 1 ? `rank${column.rank}` : '');
/** @param {AnyColumn} column */
const classOf = (column) =>
  [
    column.number && 'number',
    column.wide && 'wide',
    column.label === '' && 'acts',
    column.phone && 'phone',
    rankClass(column),
  ]
    .filter(Boolean)
    .join(' ') || null;

/** @param {AnyColumn} column @param {Order} order @param {SortBy} sortBy */
function headingOf(column, order, sortBy) {
  const { key = '', label } = column;
  const heading = h('th', { role: 'columnheader', scope: 'col', class: classOf(column), title: column.hint });
  if (column.sort) {
    heading.append(
      button(label, () => sortBy(key, order.by === key ? !order.down : naturally(column))),
      h('span', { class: 'unsorted' }, label),
    );
  } else heading.append(label === '' ? h('span', { class: 'unseen' }, t.actions) : label);
  return heading;
}

/** @param {AnyColumn[]} columns @param {Element[]} headings @param {Order} order */
function markOrder(columns, headings, { by, down }) {
  columns.forEach((column, at) => {
    if (column.sort) attr(headings[at], 'aria-sort', column.key === by ? (down ? 'descending' : 'ascending') : 'none');
  });
}

/** The headings of a phone are not shown: there a list chooses the order. @param {Whole} whole @param {SortBy} sortBy */
function choiceOf({ columns, sorted }, sortBy) {
  const sortable = columns.filter((column) => column.sort);
  const choice = h(
    'select',
    null,
    !sorted && h('option', { value: '' }, t.asListed),
    sortable.map((column) => h('option', { value: column.key }, column.label)),
  );
  choice.addEventListener('change', () => {
    const column = sortable.find(({ key }) => key === choice.value);
    sortBy(column?.key ?? '', column ? naturally(column) : false);
  });
  return choice;
}

/** @param {Whole} whole @param {Element} choice @param {Element[]} headings @param {Element} body */
function frameOf({ columns, lead, plain, caption }, choice, headings, body) {
  const isSorted = !plain && columns.some((column) => column.sort);
  return h(
    'div',
    { class: 'table' },
    (lead || isSorted) &&
      h(
        'div',
        { class: 'above' },
        lead,
        isSorted && h('label', { class: 'sort-by no-print' }, h('span', { class: 'unseen' }, t.sortBy), choice),
      ),
    h(
      'table',
      { role: 'table', class: plain ? 'plain' : 'lines' },
      h('caption', { class: 'unseen' }, caption),
      h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, headings)),
      body,
    ),
  );
}

/** @param {Whole} whole @param {any} first @param {(row: any, opener: Element) => void} toggle */
function makeRow({ columns, folded, details, key, kind, label }, first, toggle) {
  let row = first;
  const opener =
    details || folded.length > 0
      ? button('▸', () => toggle(row, opener), {
          class: details ? 'opener' : 'opener folded',
          'aria-expanded': 'false',
          'aria-label': t.open(label?.(first) ?? key(first)),
        })
      : null;
  const cells = columns.map((column, at) => {
    const cell = h('td', {
      role: 'cell',
      'data-at': column.at?.length === 1 ? column.at : null,
      'data-label': column.at === 'e' ? column.label : null,
      class: classOf(column),
    });
    const start = at === 0 ? opener : null;
    const control = column.control?.(() => row);
    cell.append(...[start, control].filter((one) => one instanceof Node));
    return { node: cell, control: control ?? start, sign: '' };
  });
  const line = h(
    'tr',
    { role: 'row' },
    cells.map(({ node }) => node),
  );
  // A finger takes the whole row; keys and screen readers have the button.
  line.addEventListener('click', (/** @type {MouseEvent} */ event) => {
    const target = event.target instanceof Element ? event.target : null;
    if (!opener?.checkVisibility() || target?.closest('a, button, input, .grip') || String(getSelection())) return;
    toggle(row, opener);
  });
  const set = (/** @type {any} */ next) => {
    row = next;
    attr(line, 'class', kind?.(row) || null);
    columns.forEach((column, at) => fillCell(column, cells[at], row));
  };
  return { node: line, handle: { set } };
}

/**
 * Writes what differs from what stands there, behind the control if there is one.
 * @param {AnyColumn} column
 * @param {{ node: Element, control: any, sign: string }} cell
 * @param {any} row
 */
function fillCell({ show, live }, cell, row) {
  if (!show) return;
  const { node, control, sign: before } = cell;
  const bits = [show(row)].flat();
  cell.sign = JSON.stringify(bits);
  if (cell.sign === before) return;
  if (control) while (control.nextSibling) control.nextSibling.remove();
  else node.replaceChildren();
  node.append(...pieces(bits));
  if (before && live) flash(node);
}

/** What opens below a row: the columns that this width leaves out, and what belongs to it. @param {Whole} whole */
function makeBelow(whole) {
  const { columns, details } = whole;
  const cell = h('td', { role: 'cell', colspan: columns.length });
  const set = (/** @type {any} */ row) =>
    memo(cell, [row, amountsHidden()], () => put(cell, foldedOf(whole, row), details?.(row) ?? null));
  return { node: h('tr', { role: 'row', class: details ? 'details' : 'details folded' }, cell), handle: { set } };
}

/** The columns that this width leaves out, with their names. @param {Whole} whole @param {any} row */
const foldedOf = ({ folded, plain }, row) =>
  h(
    'dl',
    { class: 'rest' },
    folded.map((column) => {
      const only = [rankClass(column), plain ? '' : column.at ? 'told' : 'unplaced'].filter(Boolean).join(' ');
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

/**
 * The button that saves a table; what writes the file comes when it is pressed.
 * @param {() => { columns: AnyColumn[], rows: any[] }} filed
 * @param {string} name
 */
export const csvButton = (filed, name) =>
  button(
    t.csv,
    async () => {
      const { save, written } = await import('../data/csv.js');
      save(name, `\uFEFF${written(filed())}`, 'text/csv;charset=utf-8');
    },
    { class: 'quiet' },
  );
